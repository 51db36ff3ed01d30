import type { SubscriptionStatus } from '@baton/protocol'
import { focusContent } from '../parts/focus.ts'
import { Ahead } from '../parts/moment.tsx'
import { client, mayOrder } from '../service/connection.ts'
import { useControl } from '../task/control.ts'

interface FindingsProps {
  readonly subscription: SubscriptionStatus
  readonly refresh: () => void
}

/** Why nothing is sent, and what can be done about it. */
export function SubscriptionFindings({ subscription, refresh }: FindingsProps) {
  const { id, state, reason, circuitOpenUntil } = subscription
  const { busy, order } = useControl(refresh)
  const enable = async () => {
    const isEnabled = await order(
      () => client.peek().subscriptions.enable(id),
      () => 'Enabled: what is pending is sent now',
    )
    // The finding disappears together with the focused button.
    if (isEnabled) focusContent()
  }
  return (
    <div class="findings">
      {state === 'disabled' ? (
        <section class="finding alarm" aria-label="It is disabled">
          <div>
            <p class="finding-title">It is disabled</p>
            <div class="finding-text">
              {reason ?? 'Nothing is sent'}. What happens meanwhile is not told later; what is pending is.
            </div>
          </div>
          {mayOrder.value ? (
            <button type="button" class="button primary" aria-disabled={busy} onClick={() => void enable()}>
              Enable
            </button>
          ) : null}
        </section>
      ) : null}
      {state === 'active' && circuitOpenUntil !== null ? (
        <section class="finding warn" aria-label="The receiver fails">
          <div>
            <p class="finding-title">The receiver fails</p>
            <div class="finding-text">
              It is tried again with one event <Ahead at={circuitOpenUntil} />. When it takes that, everything
              that waits is sent. The log below says what it answered.
            </div>
          </div>
        </section>
      ) : null}
    </div>
  )
}

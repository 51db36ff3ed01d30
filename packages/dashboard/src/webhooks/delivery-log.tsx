import type { Delivery, SubscriptionStatus } from '@baton/protocol'
import { MAX_PAGE_LENGTH } from '@baton/protocol/core'
import { useState } from 'preact/hooks'
import { useControl } from '../parts/control.tsx'
import { brief, exact } from '../parts/format.ts'
import { Ago, Ahead } from '../parts/moment.tsx'
import { Empty, Scrolling, Skeleton } from '../parts/panel.tsx'
import { DeliveryBadge } from '../parts/states.tsx'
import { Head, Name, unseen } from '../parts/table.tsx'
import { taskHref } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'
import { useDeliveries } from './subscription.tsx'

const ROWS_AT_FIRST = 50

interface LogProps {
  readonly subscription: SubscriptionStatus
  readonly refresh: () => void
}

/** The deliveries of a subscription, newest first. Each can be sent again. */
export function DeliveryLog({ subscription: { id, url }, refresh }: LogProps) {
  const [limit, setLimit] = useState(ROWS_AT_FIRST)
  const log = useDeliveries(id, limit)
  const { busy, request } = useControl(() => {
    log.refresh()
    refresh()
  })
  const { loaded } = log
  const deliveries = loaded.kind === 'there' ? loaded.value.deliveries : []
  const hasMore = loaded.kind === 'there' && loaded.value.next !== null
  const redeliver = (event: number) =>
    void request(
      () => client.peek().subscriptions.redeliver(id, event),
      () => `Event ${event} is sent again`,
    )
  return (
    <section class="panel" aria-labelledby="deliveries-title">
      <header class="panel-head">
        <h2 id="deliveries-title">Deliveries</h2>
        <p class="muted">newest first</p>
      </header>
      {loaded.kind === 'loading' ? <Skeleton lines={4} /> : null}
      {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
      {loaded.kind === 'there' && deliveries.length === 0 ? <Empty title="No events yet." /> : null}
      {deliveries.length === 0 ? null : (
        <Scrolling label="Rows of deliveries">
          <table class="held deliveries">
            <Head
              columns={[
                ['Event', 'number roomy-only'],
                'What happened',
                'State',
                ['Last answer', 'wide-only'],
                ['Happened', 'wide-only'],
                [unseen('Send again'), ''],
              ]}
            />
            <tbody>
              {deliveries.map((delivery) => (
                <DeliveryRow
                  key={delivery.event}
                  delivery={delivery}
                  busy={busy}
                  redeliver={url !== null && mayControl.value ? redeliver : null}
                />
              ))}
            </tbody>
          </table>
        </Scrolling>
      )}
      {hasMore && limit < MAX_PAGE_LENGTH ? (
        <button
          type="button"
          class="button wide"
          onClick={() => setLimit(Math.min(MAX_PAGE_LENGTH, limit * 3))}
        >
          Older events
        </button>
      ) : null}
      {hasMore && limit === MAX_PAGE_LENGTH ? (
        <p class="quiet">
          These are the latest {exact(limit)}. <code>baton subscriptions deliveries {id}</code> lists older
          ones.
        </p>
      ) : null}
    </section>
  )
}

interface RowProps {
  readonly delivery: Delivery
  readonly busy: boolean
  /** Null if it cannot be sent again. */
  readonly redeliver: ((event: number) => void) | null
}

function DeliveryRow({ delivery, busy, redeliver }: RowProps) {
  const { event, type, taskId, state, time } = delivery
  return (
    <tr>
      <td class="number roomy-only">{event}</td>
      <th scope="row" title={`event ${event}, ${delivery.id}`}>
        {type} <Name text={taskId} href={taskHref(taskId)} />
        <span class="under narrow-only">
          <Ago at={time} />
        </span>
        <span class="under narrow-only answer">
          <LastAnswer delivery={delivery} />
        </span>
      </th>
      <td>
        <DeliveryBadge state={state} />
      </td>
      <td class="wide-only answer">
        <LastAnswer delivery={delivery} />
      </td>
      <td class="wide-only">
        <Ago at={time} />
      </td>
      <td class="acts">
        {redeliver === null ? null : (
          <button
            type="button"
            class="button small"
            aria-disabled={busy}
            aria-label={`Send again: event ${event}`}
            onClick={() => redeliver(event)}
          >
            <span class="wide-only">Send again</span>
            <span class="narrow-only">Again</span>
          </button>
        )}
      </td>
    </tr>
  )
}

function LastAnswer({ delivery }: { delivery: Delivery }) {
  const { state, status, error, attempts, durationSeconds, nextAttemptAt } = delivery
  if (state === 'kept') return <>not read yet</>
  if (attempts === 0 && status === null && error === null) return <>not sent yet</>
  return (
    <>
      {error ?? status}
      {durationSeconds === null ? null : ` in ${brief(durationSeconds)}`}
      {attempts > 1 ? `, attempt ${attempts}` : null}
      {nextAttemptAt === null ? null : (
        <>
          ; next attempt <Ahead at={nextAttemptAt} />
        </>
      )}
    </>
  )
}

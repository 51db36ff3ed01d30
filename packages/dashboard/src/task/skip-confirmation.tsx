import type { WaitingFor } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Confirmation } from '../parts/confirmation.tsx'
import { focusContent } from '../parts/focus.ts'
import { counted } from '../parts/numbers.ts'
import { client } from '../service/connection.ts'
import type { OrderConfirmationProps } from './control.ts'

interface SkipProps extends OrderConfirmationProps {
  readonly waitingFor: WaitingFor
}

/** Lets the barrier pass what is parked: higher levels are then computed without it. */
export function SkipConfirmation({ view, waitingFor, busy, order, onClose }: SkipProps) {
  const { level, parked, unfinished } = waitingFor
  const [fault, setFault] = useState<string | null>(null)
  const skip = async () => {
    const isDone = await order(
      () => client.peek().skipParked(view.taskId),
      () => `Level ${level} no longer waits for what is parked`,
      setFault,
    )
    if (!isDone) return
    onClose()
    // The finding goes, and its button with it.
    focusContent()
  }
  return (
    <Confirmation
      title="Go on without what is parked?"
      action={`Skip ${counted(parked, 'partition')}`}
      busy={busy}
      fault={fault}
      onConfirm={() => void skip()}
      onClose={onClose}
    >
      <p>
        {unfinished > parked
          ? `Higher levels are handed out once the other ${counted(unfinished - parked, 'partition')} of level ${level} ${unfinished - parked === 1 ? 'is' : 'are'} finished.`
          : `Levels above ${level} are handed out at once.`}{' '}
        What is parked stays parked and can be retried later, but workers will not find it done.
      </p>
    </Confirmation>
  )
}

import { useState } from 'preact/hooks'
import { Confirmation } from '../parts/confirmation.tsx'
import { counted } from '../parts/numbers.ts'
import { client } from '../service/connection.ts'
import type { OrderConfirmationProps } from './control.ts'

/** Says that nothing more will come; optionally, how much should have come. */
export function SealConfirmation({ view, busy, order, onClose }: OrderConfirmationProps) {
  const { taskId, partitions } = view
  const [expected, setExpected] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const seal = async () => {
    // What cannot be read must not count as nothing: a seal without a number expects no more.
    if (expected !== '' && !/^\d{1,15}$/.test(expected)) {
      setFault('The number of partitions takes digits alone, or nothing.')
      return
    }
    const request = expected === '' ? {} : { partitions: Number(expected) }
    const isSealed = await order(
      () => client.peek().seal(taskId, request),
      () => 'Sealed: a call-back of something new is refused',
      setFault,
    )
    if (isSealed) onClose()
  }
  return (
    <Confirmation
      title="Seal this task?"
      action="Seal"
      busy={busy}
      fault={fault}
      onConfirm={() => void seal()}
      onClose={onClose}
    >
      <p>
        {counted(partitions.total, 'partition is', 'partitions are')} known. Once sealed, done is final and a
        call-back of something new is refused. This cannot be undone.
      </p>
      <label class="field">
        <span>Partitions expected in all (optional)</span>
        <input
          type="text"
          inputMode="numeric"
          placeholder={String(partitions.total)}
          value={expected}
          aria-invalid={fault !== null}
          onInput={(event) => {
            setExpected(event.currentTarget.value.trim())
            setFault(null)
          }}
        />
        <small>The task then tells how many are missing; new ones are refused all the same.</small>
      </label>
    </Confirmation>
  )
}

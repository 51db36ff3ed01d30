import { useState } from 'preact/hooks'
import { Confirmation } from '../parts/confirmation.tsx'
import { counted } from '../parts/numbers.ts'
import { client } from '../service/connection.ts'
import type { OrderConfirmationProps } from './control.ts'

/** Hands out again what is done: all of it, or a level. */
export function RerunConfirmation({ view, busy, order, onClose }: OrderConfirmationProps) {
  const { taskId, levels, partitions } = view
  const [level, setLevel] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const chosen = level === '' ? partitions : levels.find((one) => String(one.level) === level)?.partitions
  const done = chosen?.done ?? 0
  const rerun = async () => {
    const isDone = await order(
      () => client.peek().retry(taskId, { done: true, ...(level === '' ? {} : { level: Number(level) }) }),
      ({ changed }) => `${counted(changed, 'partition runs', 'partitions run')} again`,
      setFault,
    )
    if (isDone) onClose()
  }
  return (
    <Confirmation
      title="Run done partitions again?"
      action={`Run ${counted(done, 'partition')} again`}
      destroys
      busy={busy}
      fault={fault}
      onConfirm={() => void rerun()}
      onClose={onClose}
    >
      <p>
        Workers are given what is done once more, as if it never had been; parked partitions get fresh
        attempts along with it. This cannot be undone.
      </p>
      <label class="field">
        <span>Which of them</span>
        <select value={level} onChange={(event) => setLevel(event.currentTarget.value)}>
          <option value="">Every level</option>
          {levels
            .filter((one) => one.partitions.done > 0)
            .map((one) => (
              <option key={one.level} value={String(one.level)}>
                Level {one.level}
              </option>
            ))}
        </select>
      </label>
    </Confirmation>
  )
}

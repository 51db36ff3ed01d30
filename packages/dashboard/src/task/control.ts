import type { TaskView } from '@baton/protocol'
import { useRef, useState } from 'preact/hooks'
import { say } from '../parts/notices.tsx'
import { explainedOrder, noteRefusedOrder } from '../service/connection.ts'

/** Where a failure is told: beside everything else, or by whoever gave the order. */
type Fault = (words: string) => void

const tellBeside: Fault = (words) => say('failed', words)

/**
 * Runs one order at a time, says what came of it, and has what it is about looked at again. While it is busy, buttons say so
 * with `aria-disabled` and not with `disabled`, which would take the focus from them.
 */
export function useControl(refresh: () => void) {
  const [busy, setBusy] = useState(false)
  const running = useRef(false)
  const order = async <Answer>(
    run: () => Promise<Answer>,
    words: (answer: Answer) => string,
    fault: Fault = tellBeside,
  ): Promise<boolean> => {
    if (running.current) return false
    running.current = true
    setBusy(true)
    try {
      say('said', words(await run()))
      return true
    } catch (error) {
      noteRefusedOrder(error)
      fault(explainedOrder(error))
      return false
    } finally {
      running.current = false
      setBusy(false)
      refresh()
    }
  }
  return { busy, order }
}

export type Order = ReturnType<typeof useControl>['order']

/** What a confirmation needs from whoever opens it. */
export interface OrderConfirmationProps {
  readonly view: TaskView
  readonly busy: boolean
  readonly order: Order
  readonly onClose: () => void
}

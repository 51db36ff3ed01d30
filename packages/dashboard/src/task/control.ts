import type { TaskView } from '@baton/protocol'
import { useRef, useState } from 'preact/hooks'
import { say } from '../parts/notices.tsx'
import { explainedOrder, noteRefusedOrder } from '../service/connection.ts'

/** Shows a failure: in a notice, or in the dialog that started the action. */
type Fault = (words: string) => void

const tellBeside: Fault = (words) => say('failed', words)

/**
 * Runs one action at a time, shows its result, and refreshes. While an action runs, buttons use
 * `aria-disabled` instead of `disabled`, which would remove the focus from them.
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

/** The props that a confirmation dialog gets. */
export interface OrderConfirmationProps {
  readonly view: TaskView
  readonly busy: boolean
  readonly order: Order
  readonly onClose: () => void
}

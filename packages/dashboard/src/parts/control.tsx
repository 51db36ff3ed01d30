import type { TaskView } from '@baton/protocol'
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { explainedControl, noteRefusedControl } from '../service/connection.ts'

interface Notice {
  readonly id: number
  readonly kind: 'said' | 'failed'
  readonly text: string
}

const SHOWN_MILLIS = 6000

const notices = signal<readonly Notice[]>([])
let count = 0

/** Shows the result of an action. A failure stays until the user closes it. */
export function say(kind: Notice['kind'], text: string): void {
  count += 1
  const id = count
  const others = notices.peek().filter((one) => one.text !== text)
  notices.value = [...others.slice(-2), { id, kind, text }]
  if (kind === 'said') setTimeout(() => dismiss(id), SHOWN_MILLIS)
}

function dismiss(id: number): void {
  notices.value = notices.peek().filter((one) => one.id !== id)
}

export function Notices() {
  return (
    <div class="notices" aria-live="polite">
      {notices.value.map(({ id, kind, text }) => (
        <div key={id} class={`notice ${kind}`}>
          <p>{text}</p>
          {kind === 'failed' ? (
            <button type="button" class="button small" onClick={() => dismiss(id)}>
              Dismiss
            </button>
          ) : null}
        </div>
      ))}
    </div>
  )
}

/** Shows a failure: in a notice, or in the dialog that started the action. */
type Fault = (words: string) => void

const showNotice: Fault = (words) => say('failed', words)

/**
 * Runs one action at a time, shows its result, and refreshes. While an action runs, buttons use
 * `aria-disabled` instead of `disabled`, which would remove the focus from them.
 */
export function useControl(refresh: () => void) {
  const [busy, setBusy] = useState(false)
  const running = useRef(false)
  async function request<Answer>(
    run: () => Promise<Answer>,
    words: (answer: Answer) => string,
    fault: Fault = showNotice,
  ): Promise<boolean> {
    if (running.current) return false
    running.current = true
    setBusy(true)
    try {
      say('said', words(await run()))
      return true
    } catch (error) {
      noteRefusedControl(error)
      fault(explainedControl(error))
      return false
    } finally {
      running.current = false
      setBusy(false)
      refresh()
    }
  }
  return { busy, request }
}

export type ControlRequest = ReturnType<typeof useControl>['request']

/** The props that a confirmation dialog gets. */
export interface ControlConfirmationProps {
  readonly view: TaskView
  readonly busy: boolean
  readonly request: ControlRequest
  readonly onClose: () => void
}

interface ConfirmationProps {
  readonly title: string
  readonly action: string
  /** The label of the first button. */
  readonly dismiss?: string
  readonly destroys?: boolean
  readonly busy: boolean
  /** Why the action failed. Shown in the dialog, because it covers the rest of the page. */
  readonly fault: string | null
  readonly onConfirm: () => void
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** Asks for confirmation of an action that cannot be undone. Escape and the first button change nothing. */
export function Confirmation({
  title,
  action,
  dismiss = 'Keep as it is',
  destroys,
  busy,
  fault,
  onConfirm,
  onClose,
  children,
}: ConfirmationProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} class="confirmation" aria-labelledby={titleId} onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (!busy) onConfirm()
        }}
      >
        <h2 id={titleId}>{title}</h2>
        {children}
        <p class="fault" role="alert">
          {fault}
        </p>
        <div class="buttons">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            {dismiss}
          </button>
          <button type="submit" class={`button ${destroys ? 'danger' : 'primary'}`} aria-disabled={busy}>
            {action}
          </button>
        </div>
      </form>
    </dialog>
  )
}

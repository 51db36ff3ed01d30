import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

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

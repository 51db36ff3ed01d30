import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

interface ConfirmationProps {
  readonly title: string
  readonly action: string
  /** What the first button says. */
  readonly dismiss?: string
  readonly destroys?: boolean
  readonly busy: boolean
  /** Why it was not done, in words: here, because the rest of the page lies behind. */
  readonly fault: string | null
  readonly onConfirm: () => void
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** Asks before something is done that cannot be undone. Escape and the first button leave everything as it is. */
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

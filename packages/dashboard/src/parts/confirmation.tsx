import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

interface ConfirmationProps {
  readonly title: string
  readonly action: string
  readonly destroys?: boolean
  readonly busy: boolean
  readonly onConfirm: () => void
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** Asks before something is done that cannot be undone. Escape and the first button leave everything as it is. */
export function Confirmation({
  title,
  action,
  destroys,
  busy,
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
      <h2 id={titleId}>{title}</h2>
      {children}
      <div class="buttons">
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Keep as it is
        </button>
        <button
          type="button"
          class={`button ${destroys ? 'danger' : 'primary'}`}
          disabled={busy}
          onClick={onConfirm}
        >
          {action}
        </button>
      </div>
    </dialog>
  )
}

import { useEffect, useId, useRef } from 'preact/hooks'
import { Copyable } from '../parts/copyable.tsx'

interface SecretDialogProps {
  readonly title: string
  readonly secret: string
  readonly onClose: () => void
}

/** Shows a secret. The service sends it only once, so it is gone when the dialog is closed. */
export function SecretDialog({ title, secret, onClose }: SecretDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} class="confirmation" aria-labelledby={titleId} onClose={onClose}>
      <form method="dialog">
        <h2 id={titleId}>{title}</h2>
        <p>The receiver checks signatures with this secret. Copy it now: it is not shown again.</p>
        <Copyable text={secret} label="Secret" />
        <div class="buttons">
          <button type="submit" class="button primary">
            Done
          </button>
        </div>
      </form>
    </dialog>
  )
}

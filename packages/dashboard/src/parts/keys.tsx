import { useEffect, useRef, useState } from 'preact/hooks'

const keys: readonly (readonly [key: string, effect: string])[] = [
  ['/', 'search on this page'],
  ['?', 'list the keys'],
  ['Esc', 'close a dialog or a menu'],
  ['Tab, Enter', 'go through links and buttons, and use one'],
]

/** `/` searches, `?` lists the keys. Neither while something is typed. */
export function Keys() {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, target, ctrlKey, metaKey, altKey } = event
      const isTyping = target instanceof Element && target.closest('input, select, textarea, dialog') !== null
      if (isTyping || ctrlKey || metaKey || altKey) return
      if (key === '?') setOpen(true)
      if (key === '/') {
        document.querySelector<HTMLInputElement>('main input[type=search]')?.focus()
        event.preventDefault()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return isOpen ? <KeyList onClose={() => setOpen(false)} /> : null
}

function KeyList({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="confirmation" aria-labelledby="keys-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="keys-title">Keys</h2>
        <dl class="keys">
          {keys.map(([key, effect]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{effect}</dd>
            </div>
          ))}
        </dl>
        <div class="buttons">
          <button type="submit" class="button">
            Close
          </button>
        </div>
      </form>
    </dialog>
  )
}

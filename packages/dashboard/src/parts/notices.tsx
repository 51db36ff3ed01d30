import { signal } from '@preact/signals'

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

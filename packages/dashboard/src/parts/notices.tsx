import { signal } from '@preact/signals'

interface Notice {
  readonly id: number
  readonly kind: 'said' | 'failed'
  readonly text: string
}

const SHOWN_MILLIS = 6000

const notices = signal<readonly Notice[]>([])
let count = 0

/** Tells what a click came to. */
export function say(kind: Notice['kind'], text: string): void {
  count += 1
  const notice = { id: count, kind, text }
  notices.value = [...notices.peek().slice(-2), notice]
  setTimeout(() => {
    notices.value = notices.peek().filter(({ id }) => id !== notice.id)
  }, SHOWN_MILLIS)
}

export function Notices() {
  return (
    <div class="notices" aria-live="polite">
      {notices.value.map(({ id, kind, text }) => (
        <p key={id} class={`notice ${kind}`}>
          {text}
        </p>
      ))}
    </div>
  )
}

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** What is wanted seldom, behind one button. It closes with Escape, a click elsewhere, or once something was chosen. */
export function More({ children }: { children: ComponentChildren }) {
  const group = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = () => {
      if (group.current !== null) group.current.open = false
    }
    const onClick = ({ target }: Event) => {
      const isSummary = target instanceof Element && target.closest('summary') !== null
      const isWithin = target instanceof Node && group.current?.contains(target)
      if (!(isWithin && isSummary)) close()
    }
    const onKey = ({ key }: KeyboardEvent) => {
      if (key !== 'Escape' || !group.current?.open) return
      close()
      group.current.querySelector('summary')?.focus()
    }
    addEventListener('click', onClick)
    addEventListener('keydown', onKey)
    return () => {
      removeEventListener('click', onClick)
      removeEventListener('keydown', onKey)
    }
  }, [])
  return (
    <details class="more" ref={group}>
      <summary class="button">More</summary>
      <div class="more-choices">{children}</div>
    </details>
  )
}

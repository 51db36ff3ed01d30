import type { ComponentChildren, RefObject } from 'preact'

interface ScrollingProps {
  readonly label: string
  readonly kind?: string
  readonly box?: RefObject<HTMLElement | null>
  readonly children: ComponentChildren
}

/** A box that scrolls by itself. It can take the focus, because keyboards scroll what has it. */
export function Scrolling({ label, kind = '', box, children }: ScrollingProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it a keyboard could not scroll
    <section class={`scrolling ${kind}`} ref={box ?? null} tabIndex={0} aria-label={label}>
      {children}
    </section>
  )
}

import type { ComponentChildren, RefObject } from 'preact'

interface ScrollingProps {
  readonly label: string
  readonly kind?: string
  readonly box?: RefObject<HTMLElement | null>
  readonly children: ComponentChildren
}

/** A scrollable box. It is focusable, so that it can be scrolled with the keyboard. */
export function Scrolling({ label, kind = '', box, children }: ScrollingProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: required to scroll with the keyboard
    <section class={`scrolling ${kind}`} ref={box ?? null} tabIndex={0} aria-label={label}>
      {children}
    </section>
  )
}

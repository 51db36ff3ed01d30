import type { ComponentChildren, RefObject } from 'preact'
import { useState } from 'preact/hooks'

/** Explains why a list is empty, and what would fill it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** Grey placeholder lines, so that the layout does not shift when the content is loaded. */
export function Skeleton({ lines }: { lines: number }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} />
      ))}
    </div>
  )
}

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

/** A command with a copy button. If the clipboard is not available, the text can still be selected. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), 2000)
    } catch {
      setCopied(false)
    }
  }
  return (
    <div class="copyable">
      <Scrolling label={label}>
        <pre>{text}</pre>
      </Scrolling>
      <button type="button" class="button small" onClick={() => void copy()}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}

/**
 * Moves the focus to the beginning of the content. If a click removed the focused element, keyboard
 * navigation would otherwise restart at the top of the page.
 */
export function focusContent(): void {
  const content = document.getElementById('content')
  content?.setAttribute('tabindex', '-1')
  content?.focus({ preventScroll: true })
}

interface FactProps {
  readonly name: string
  readonly value: ComponentChildren
  /** For a value that is a text, not a number. */
  readonly small?: boolean
  readonly children: ComponentChildren
}

/** One figure in a list of facts, with a note below it. */
export function Fact({ name, value, small, children }: FactProps) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd class={small ? 'fact-value small' : 'fact-value'}>{value}</dd>
      <dd class="fact-note">{children}</dd>
    </div>
  )
}

interface FindingProps {
  readonly kind: 'alarm' | 'warn' | 'hint'
  readonly title: string
  readonly action?: ComponentChildren
  readonly children: ComponentChildren
}

/** Something that the user should know, and an action against it. */
export function Finding({ kind, title, action, children }: FindingProps) {
  return (
    <section class={`finding ${kind}`} aria-label={title}>
      <div>
        <p class="finding-title">{title}</p>
        <div class="finding-text">{children}</div>
      </div>
      {action}
    </section>
  )
}

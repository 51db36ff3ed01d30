import type { ComponentChildren } from 'preact'

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

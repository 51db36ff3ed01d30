import { lastLine } from '../parts/last-line.ts'

export interface Unfolding {
  /** Of the row that tells all of it. */
  readonly detailId: string
  readonly isOpen: boolean
  readonly toggle: () => void
}

/** Why it failed, in the line that says most; the whole of it unfolds below the row. */
export function Reason({ text, unfolding }: { text: string; unfolding: Unfolding }) {
  const { detailId, isOpen, toggle } = unfolding
  return (
    <button
      type="button"
      class="reason"
      aria-expanded={isOpen}
      aria-controls={isOpen ? detailId : undefined}
      onClick={toggle}
    >
      <span class="cut">{lastLine(text)}</span>
    </button>
  )
}

import { signal } from '@preact/signals'

/** Fixed, so that the place of every row is known without drawing it. The style sheet has the same numbers. */
const WIDE = 40
const NARROW = 58

/** On a phone a row has a second line in place of some columns. */
const narrow = matchMedia('(max-width: 640px)')

export const rowHeight = signal(narrow.matches ? NARROW : WIDE)

narrow.addEventListener('change', () => {
  rowHeight.value = narrow.matches ? NARROW : WIDE
})

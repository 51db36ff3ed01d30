import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { rowHeight } from './row-height.ts'

/** Rows beyond the edges, so that scrolling meets drawn ones. */
const MARGIN = 12
const FIRST_GUESS = 30

/**
 * Which rows of a list can be seen in a box that scrolls; `last` is the first that cannot. What is unfolded between two
 * of them has a height of its own: wherever it is, none is missing.
 */
export function useVisibleRows(
  box: RefObject<HTMLElement | null>,
  length: number,
  unfolded: number,
): { first: number; last: number } {
  const [range, setRange] = useState({ first: 0, last: FIRST_GUESS })
  useEffect(() => {
    const element = box.current
    if (element === null) return
    let frame = 0
    const measure = () => {
      frame = 0
      const height = rowHeight.peek()
      const first = Math.max(0, Math.floor((element.scrollTop - unfolded) / height) - MARGIN)
      const last = Math.ceil((element.scrollTop + element.clientHeight) / height) + MARGIN
      setRange((before) => (before.first === first && before.last === last ? before : { first, last }))
    }
    const onScroll = () => {
      if (frame === 0) frame = requestAnimationFrame(measure)
    }
    measure()
    element.addEventListener('scroll', onScroll, { passive: true })
    addEventListener('resize', onScroll)
    return () => {
      cancelAnimationFrame(frame)
      element.removeEventListener('scroll', onScroll)
      removeEventListener('resize', onScroll)
    }
  }, [box, length > 0, unfolded])
  return { first: Math.min(range.first, length), last: Math.min(range.last, length) }
}

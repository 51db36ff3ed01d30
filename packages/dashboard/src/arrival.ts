import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { focusContent } from './parts/focus.ts'

/** How far each page was scrolled when it was left. */
const scrolled = new Map<string, number>()
let isLinkFollowed = false

addEventListener('click', ({ target }) => {
  isLinkFollowed = target instanceof Element && target.closest('a') !== null
})

/**
 * A link leads to the top of its page, and the focus goes along: what had it is gone. The way back leads to where one
 * was. The browser would do the latter by itself, but not once the focus has been moved.
 */
export function useArrival(place: string): void {
  const before = useRef(place)
  const position = useRef(0)
  useEffect(() => {
    const note = () => {
      position.current = scrollY
    }
    addEventListener('scroll', note, { passive: true })
    return () => removeEventListener('scroll', note)
  }, [])
  // At once: a shorter page would let the browser forget how far the one before was scrolled.
  useLayoutEffect(() => {
    if (before.current === place) return
    scrolled.set(before.current, position.current)
    before.current = place
    if (isLinkFollowed) {
      scrollTo(0, 0)
      focusContent()
    } else scrollTo(0, scrolled.get(place) ?? 0)
    isLinkFollowed = false
  }, [place])
}

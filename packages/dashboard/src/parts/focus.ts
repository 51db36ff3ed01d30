/**
 * Puts the focus where the page's content begins. What had it may have gone with a click, and a keyboard would then
 * begin again at the top.
 */
export function focusContent(): void {
  const content = document.getElementById('content')
  content?.setAttribute('tabindex', '-1')
  content?.focus({ preventScroll: true })
}

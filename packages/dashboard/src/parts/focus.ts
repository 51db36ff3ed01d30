/**
 * Moves the focus to the beginning of the content. If a click removed the focused element, keyboard
 * navigation would otherwise restart at the top of the page.
 */
export function focusContent(): void {
  const content = document.getElementById('content')
  content?.setAttribute('tabindex', '-1')
  content?.focus({ preventScroll: true })
}

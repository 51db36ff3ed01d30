import { signal } from '@preact/signals'

/** The present, to the second: for "3 s ago" and for charts that move. */
export const now = signal(Date.now())

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, 1000)
}

import { signal } from '@preact/signals'

/** The current time, updated every second, for relative times and live charts. */
export const now = signal(Date.now())

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, 1000)
}

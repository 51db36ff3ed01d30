import { setTimeout as pause } from 'node:timers/promises'

/** Waits until something holds. How long that takes does not matter; the test's own time-out is the only limit. */
export async function until<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
  while (true) {
    const seen = await look()
    if (seen) return seen as NonNullable<T>
    await pause(10)
  }
}

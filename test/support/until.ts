import { setTimeout as pause } from 'node:timers/promises'

/** Waits until a condition holds. The only limit is the test's own timeout. */
export async function until<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
  while (true) {
    const seen = await look()
    if (seen) return seen as NonNullable<T>
    await pause(10)
  }
}

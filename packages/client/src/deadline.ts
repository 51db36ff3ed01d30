import { timer } from './timer.ts'

/** A moment that can be brought forward but not put off. */
export class Deadline {
  readonly reached: Promise<void>
  readonly #reach: () => void
  #at = Number.POSITIVE_INFINITY
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.reached = promise
    this.#reach = resolve
  }

  within(seconds: number): void {
    const at = performance.now() + seconds * 1000
    if (at >= this.#at) return
    this.#at = at
    clearTimeout(this.#timer)
    this.#timer = timer(this.#reach, seconds * 1000)
  }

  /** Nobody waits for it any more. */
  forget(): void {
    clearTimeout(this.#timer)
  }
}

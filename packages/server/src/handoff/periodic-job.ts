/** Never concurrently with itself: after its interval, or earlier on request. */
export class PeriodicJob {
  readonly #run: () => Promise<number>
  #timer: NodeJS.Timeout | undefined
  #at = Number.POSITIVE_INFINITY
  #running: Promise<void> | undefined
  #stopped = true

  /** `run` resolves with the milliseconds until the next run. It must never reject. */
  constructor(run: () => Promise<number>) {
    this.#run = run
  }

  start(): void {
    this.#stopped = false
    this.dueIn(0)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  dueIn(millis: number): void {
    const at = performance.now() + Math.max(0, millis)
    if (this.#stopped || at >= this.#at) return
    this.#at = at
    if (this.#running !== undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => {
        this.#running = this.#runOnce()
      },
      Math.ceil(Math.max(0, millis)),
    )
  }

  async #runOnce(): Promise<void> {
    this.#at = Number.POSITIVE_INFINITY
    const rest = await this.#run()
    this.#running = undefined
    const asked = this.#at - performance.now()
    this.#at = Number.POSITIVE_INFINITY
    this.dueIn(Math.min(rest, asked))
  }
}

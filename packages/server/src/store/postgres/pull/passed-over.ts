/**
 * How long until pulls that found nothing but what others had locked look again. Mostly those others take it, and all of
 * it is gone after some milliseconds; what they let go, because their transaction failed, nobody would tell of.
 */
const LOOK_SOON_MILLIS = 100

/** Wakes as many waiting pulls of this node as came away empty although something was there. */
export class PassedOver {
  readonly #wake: (pulls: number) => void
  #pulls = 0
  #timer: NodeJS.Timeout | undefined

  constructor(wake: (pulls: number) => void) {
    this.#wake = wake
  }

  note(pulls: number): void {
    this.#pulls += pulls
    this.#timer ??= setTimeout(() => {
      const woken = this.#pulls
      this.stop()
      this.#wake(woken)
    }, LOOK_SOON_MILLIS)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#pulls = 0
  }
}

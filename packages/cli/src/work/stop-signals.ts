import type { Worker } from '@baton/client'
import { exitCodes } from '../errors.ts'
import { counted } from '../show/numbers.ts'

interface StopSignalsOptions {
  readonly worker: Worker
  readonly drainSeconds: number
  /** The time between SIGTERM and SIGKILL for commands. */
  readonly killAfterSeconds: number
  /** Whether the service accepts released partitions. */
  readonly takesBack: () => boolean
  readonly say: (text: string) => void
}

/** The time to release leases after the commands have ended. */
const GIVE_BACK_SECONDS = 5

/**
 * The first Ctrl-C lets commands finish without a time limit, because the user can press it again. The second
 * ends the commands and releases their partitions. The third exits at once. A SIGTERM comes from a
 * supervisor, which will not wait forever, so the time to finish is limited.
 */
export class StopSignals implements Disposable {
  readonly #options: StopSignalsOptions
  readonly #listeners: readonly (readonly [NodeJS.Signals, () => void])[]
  #interrupts = 0
  /** The exit code that shells expect after this signal. `undefined` without a signal. */
  endedBy: number | undefined
  /** Whether commands were ended before they could finish, by a second Ctrl-C. */
  wasHurried = false

  constructor(options: StopSignalsOptions) {
    this.#options = options
    this.#listeners = [
      ['SIGINT', () => this.#interrupt()],
      ['SIGTERM', () => this.#terminate()],
      ['SIGHUP', () => this.#terminate()],
    ]
    for (const [signal, listener] of this.#listeners) process.on(signal, listener)
  }

  [Symbol.dispose](): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
  }

  #interrupt(): void {
    const { worker, takesBack, say } = this.#options
    this.#interrupts += 1
    this.endedBy ??= exitCodes.interrupted
    if (this.#interrupts === 1) {
      if (worker.running > 0) {
        const then = takesBack() ? 'gives them back' : 'loses them: the service counts them as done'
        say(`finishing ${counted(worker.running, 'partition')}; Ctrl-C again ends them and ${then}`)
      }
      void worker.stop({ finishWithinSeconds: Number.POSITIVE_INFINITY })
    } else if (this.#interrupts === 2) {
      say(
        takesBack()
          ? 'ending commands and giving their partitions back'
          : 'ending commands; their partitions cannot be given back: the service counts them as done',
      )
      this.endedBy = exitCodes.interrupted
      this.wasHurried = true
      this.#stopWithin(0)
    } else process.exit(exitCodes.interrupted)
  }

  #terminate(): void {
    const { worker, drainSeconds, say } = this.#options
    this.endedBy ??= exitCodes.terminated
    say(`told to stop: ${counted(worker.running, 'partition')} may finish within ${drainSeconds} s`)
    this.#stopWithin(drainSeconds)
  }

  #stopWithin(finishWithinSeconds: number): void {
    const releaseWithinSeconds = this.#options.killAfterSeconds + GIVE_BACK_SECONDS
    void this.#options.worker.stop({ finishWithinSeconds, releaseWithinSeconds })
  }
}

import type { Log } from './log.ts'
import { type HandOffAnswers, LeaderChanged, StoreUnavailable } from './store.ts'

/** Tells once that the store cannot commit, or that its leader has changed, and once that it can commit again. */
export class Outage {
  readonly #log: Log
  readonly #beginGrace: () => void
  #isOn = false
  #leaderChanged = false

  constructor(log: Log, beginGrace: () => void) {
    this.#log = log
    this.#beginGrace = beginGrace
  }

  failed(error: unknown): void {
    if (error instanceof LeaderChanged) {
      if (!this.#isOn && !this.#leaderChanged) this.#tellOfLeader(error)
      this.#leaderChanged = true
      this.#beginGrace()
    } else if (error instanceof StoreUnavailable) {
      if (!this.#isOn) this.#tell(error)
      this.#isOn = true
      this.#beginGrace()
    } else this.#log.error({ err: error }, 'the hand-off failed')
  }

  /** Whoever runs the service needs the reason; the stacks behind it are for whoever looks for a defect. */
  #tell(error: StoreUnavailable): void {
    const { code, message: reason } = error
    this.#log.error({ code, reason, cause: firstCauseOf(error) }, 'the store cannot commit')
    this.#log.debug({ err: error }, 'where it was noticed that the store cannot commit')
  }

  #tellOfLeader({ message: reason }: LeaderChanged): void {
    const next = 'requests that were under way there are answered 503, others wait for the next one'
    this.#log.warn({ reason }, `the leader is away or has changed: ${next}`)
  }

  over(): void {
    if (!this.#isOn && !this.#leaderChanged) return
    this.#isOn = false
    this.#leaderChanged = false
    this.#beginGrace()
    this.#log.info({}, 'the store is back; leases are not taken until their holders had time to renew')
  }
}

/** In words, where there is one. */
export function firstCauseOf(error: Error): string | undefined {
  let cause = error.cause
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  return cause instanceof Error ? cause.message : undefined
}

/**
 * Pulls that found nothing, and the like, leave nothing to commit. Nor does a settlement that is said again, and its answer
 * is that of the first time: settlements tell nothing here, and the heartbeat does within seconds.
 */
export function hasWritten({ renews, undone, callBacks, pulls }: HandOffAnswers): boolean {
  return (
    undone > 0 ||
    renews.some((verdicts) => verdicts.some(({ refused }) => refused === null)) ||
    callBacks.some((result) => result.kind === 'stored' && result.accepted > 0) ||
    pulls.some(({ partitions, repeated }) => partitions.length > 0 && !repeated)
  )
}

import type { Log } from './log.ts'
import { type HandOffAnswers, type Store, StoreUnavailable } from './store.ts'

/** Tells once that the store cannot commit, and once that it can again. */
export class Outage {
  readonly #log: Log
  readonly #beginGrace: () => void
  #isOn = false

  constructor(log: Log, beginGrace: () => void) {
    this.#log = log
    this.#beginGrace = beginGrace
  }

  failed(error: unknown): void {
    if (error instanceof StoreUnavailable) {
      if (!this.#isOn) this.#log.error({ err: error, code: error.code }, 'the store cannot commit')
      this.#isOn = true
      this.#beginGrace()
    } else this.#log.error({ err: error }, 'the hand-off failed')
  }

  over(): void {
    if (!this.#isOn) return
    this.#isOn = false
    this.#beginGrace()
    this.#log.info({}, 'the store is back; leases are not taken until their holders had time to renew')
  }
}

/**
 * The same store; what it writes each time it is asked ends an outage. This node's heartbeat is among it, so that the
 * end is noticed where nobody else asks. Looking proves nothing: a full disk can be read.
 */
export function endingOutages(store: Store, outage: Outage): Store {
  return {
    ...store,
    probe: async () => {
      await store.probe()
      outage.over()
    },
    recordSightings: async (sightings) => {
      await store.recordSightings(sightings)
      outage.over()
    },
  }
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

import type { Stopwatch } from './clock.ts'
import type { StoreCounts } from './counts/counts.ts'
import type { Log } from './log.ts'
import {
  eachVerb,
  type HandOffAnswers,
  LeaderUnavailable,
  runVerb,
  type Store,
  StoreUnavailable,
  type StoreVerb,
} from './store.ts'

/** Logs once when the store cannot commit or its leader has changed, and once when it can commit again. */
export class StoreHealth {
  readonly #log: Log
  readonly #beginGrace: () => void
  #isOut = false
  #leaderChanged = false

  constructor(log: Log, beginGrace: () => void) {
    this.#log = log
    this.#beginGrace = beginGrace
  }

  failed(error: unknown): void {
    if (error instanceof LeaderUnavailable) {
      if (!this.#isOut && !this.#leaderChanged) this.#reportLeader(error)
      this.#leaderChanged = true
      this.#beginGrace()
    } else if (error instanceof StoreUnavailable) {
      if (!this.#isOut) this.#report(error)
      this.#isOut = true
      this.#beginGrace()
    } else this.#log.error({ err: error }, 'the hand-off failed')
  }

  /** Operators need the reason. The stack traces are for debugging. */
  #report(error: StoreUnavailable): void {
    const { code, message: reason } = error
    this.#log.error({ code, reason, cause: firstCauseOf(error) }, 'the store cannot commit')
    this.#log.debug({ err: error }, 'stack trace of the failed commit')
  }

  #reportLeader({ message: reason }: LeaderUnavailable): void {
    const next = 'requests in progress are answered with 503, other requests wait for the next leader'
    this.#log.warn({ reason }, `the leader is unavailable or has changed: ${next}`)
  }

  recovered(): void {
    if (!this.#isOut && !this.#leaderChanged) return
    this.#isOut = false
    this.#leaderChanged = false
    this.#beginGrace()
    this.#log.info({}, 'the store is available again; no lease expires during the grace period')
  }
}

/** The message of the root cause, if any. */
function firstCauseOf(error: Error): string | undefined {
  let cause = error.cause
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  return cause instanceof Error ? cause.message : undefined
}

/**
 * Whether the batch committed something. Empty pulls write nothing. Settlements are ignored, because a
 * repeated settlement writes nothing and has the same answer as the first. The heartbeat detects recovery
 * within seconds.
 */
function hasWritten({ renews, undone, callBacks, pulls }: HandOffAnswers): boolean {
  return (
    undone > 0 ||
    renews.some((verdicts) => verdicts.some(({ refused }) => refused === null)) ||
    callBacks.some((result) => result.kind === 'stored' && result.accepted > 0) ||
    pulls.some(({ partitions, repeated }) => partitions.length > 0 && !repeated)
  )
}

/**
 * A nearly full disk accepts some writes and refuses others. There is space again when nothing was refused
 * for this long.
 */
const QUIET_MILLIS = 60_000

/**
 * Logs once when the store has too little space, and once when it has enough again. This is not an outage:
 * small writes succeed, so workers can settle, and the node keeps handing out.
 */
export class DiskSpace {
  readonly #log: Log
  readonly #stopwatch: Stopwatch
  #isShort = false
  #refusedAt = Number.NEGATIVE_INFINITY

  constructor(log: Log, stopwatch: Stopwatch) {
    this.#log = log
    this.#stopwatch = stopwatch
  }

  refused(error: StoreUnavailable): void {
    if (!this.#isShort || this.#isQuiet()) {
      const { code, message: reason } = error
      this.#log.error(
        { code, reason, cause: firstCauseOf(error) },
        'the store has no free space: requests that do not fit are refused',
      )
    }
    this.#isShort = true
    this.#refusedAt = this.#stopwatch()
  }

  /** A call-back was stored. */
  stored(): void {
    if (!this.#isShort || !this.#isQuiet()) return
    this.#isShort = false
    this.#log.info({}, 'the store has free space again')
  }

  #isQuiet(): boolean {
    return this.#stopwatch() - this.#refusedAt >= QUIET_MILLIS
  }
}

export function isDiskFull(error: unknown): error is StoreUnavailable {
  return error instanceof StoreUnavailable && error.code === 'store_full'
}

/**
 * Wraps a store to measure its calls and to detect the end of an outage: a successful write ends it. The
 * heartbeat of this node is such a write, so recovery is noticed without other requests. Reads prove nothing:
 * a full disk can be read.
 */
export function watchedStore(store: Store, counts: StoreCounts, storeHealth: StoreHealth): Store {
  const succeeded: {
    [Verb in StoreVerb]?: (...call: [Parameters<Store[Verb]>[0], Awaited<ReturnType<Store[Verb]>>]) => void
  } = {
    runBatch: (batch, answers) => {
      counts.noteCommit(batch, answers)
      if (hasWritten(answers)) storeHealth.recovered()
    },
    sweep: (_request, swept) => counts.noteSweep(swept),
    recordHeartbeats: () => storeHealth.recovered(),
    probe: () => storeHealth.recovered(),
  }
  const verbs = eachVerb((verb) => {
    const verbCounts = counts.of(verb)
    const note = succeeded[verb] as ((argument: unknown, result: unknown) => void) | undefined
    return async (argument) => {
      const began = performance.now()
      try {
        const result = await runVerb(store, verb, argument)
        verbCounts.seconds.add((performance.now() - began) / 1000)
        note?.(argument, result)
        return result
      } catch (error) {
        verbCounts.failures += 1
        throw error
      }
    }
  })
  const { cluster } = store
  return { ...verbs, runsAlone: (callBack) => store.runsAlone(callBack), close: () => store.close(), cluster }
}

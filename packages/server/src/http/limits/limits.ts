import type { Log } from '../../handoff/log.ts'

/** What clients may use at once. Each limit has a setting. */
export interface ClientLimits {
  readonly connections: number
  readonly connectionsPerAddress: number
  readonly requestsPerConnection: number
  readonly waitingPulls: number
  readonly waitingPullsPerCaller: number
  readonly receivedBytes: number
  readonly unsentBytes: number
  readonly callBackPartitions: number
  readonly callBackLevels: number
  readonly requestMillis: number
  readonly answerMillis: number
  readonly overloadMillis: number
  /** 0: no limit. */
  readonly requestsPerSecond: number
}

interface Limit {
  readonly flag: string
  /** What happens when the limit is reached. */
  readonly effect: string
}

/** All limits, by the label that they have in the metric `baton_bounds_met_total` and in the log. */
export const clientLimits = {
  connections: {
    flag: '--max-connections',
    effect:
      'the oldest connection of the address with the most connections is closed, or the new connection with 503',
  },
  'file-handles': {
    flag: '--max-connections',
    effect: 'the same, if the limit on open files is lower than this limit',
  },
  'address-connections': {
    flag: '--max-connections-per-address',
    effect: 'the new connection is closed with 503',
  },
  'connection-requests': {
    flag: '--max-requests-per-connection',
    effect:
      'no further request is read from the connection until earlier ones are answered, 8 at a time; its pulls do not wait; if 4,000 requests of all connections are queued, the connection is closed',
  },
  'waiting-pulls': {
    flag: '--max-waiting-pulls',
    effect: 'the pull is answered at once, with Retry-After if nothing is ready',
  },
  'caller-waiting-pulls': {
    flag: '--max-waiting-pulls-per-caller',
    effect: 'the pull is answered at once, with Retry-After if nothing is ready',
  },
  'received-bytes': {
    flag: '--max-received-mb',
    effect:
      'the largest and oldest unfinished bodies are answered with 503; an additional quarter is reserved for all requests except call-backs',
  },
  'call-back-partitions': { flag: '--max-call-back-partitions', effect: '413, before the body is parsed' },
  'body-shape': {
    flag: '--max-call-back-partitions',
    effect:
      'before the body is parsed: 413 for too many values; 422 for more than 16 levels of nesting, or for a descriptor of more than 64 KiB',
  },
  'call-back-levels': { flag: '--max-call-back-levels', effect: '422' },
  'request-time': { flag: '--request-seconds', effect: '408, and the connection is closed' },
  'answer-time': { flag: '--answer-seconds', effect: 'the connection is closed' },
  'unsent-bytes': {
    flag: '--max-unsent-mb',
    effect: 'connections with the most unsent bytes are closed',
  },
  overload: {
    flag: '--overload-seconds',
    effect:
      '503: call-backs first, views at twice the delay, pulls at four times, everything else at eight times',
  },
  rate: { flag: '--max-requests-per-second', effect: '429 with Retry-After' },
} as const satisfies Record<string, Limit>

export type LimitName = keyof typeof clientLimits

export const limitNames = Object.keys(clientLimits) as LimitName[]

/** A client that floods the service must not flood the log as well. */
const LOG_EVERY_MILLIS = 10_000

/** Counts and logs how often limits were reached: the first time at once, then every ten seconds at most. */
export class ReachedLimits {
  readonly counts = Object.fromEntries(limitNames.map((name) => [name, 0])) as Record<LimitName, number>
  readonly #log: Log
  readonly #logged = new Map<LimitName, { readonly at: number; readonly count: number }>()

  constructor(log: Log) {
    this.#log = log
  }

  /** `address` is that of the caller, where it is known. */
  note(name: LimitName, address?: string | undefined): void {
    this.counts[name] += 1
    const now = performance.now()
    const last = this.#logged.get(name)
    if (last !== undefined && now - last.at < LOG_EVERY_MILLIS) return
    const { flag, effect } = clientLimits[name]
    const times = this.counts[name] - (last?.count ?? 0)
    this.#logged.set(name, { at: now, count: this.counts[name] })
    this.#log.warn({ bound: name, times, setting: flag, effect, address }, 'a limit for clients was reached')
  }
}

import type { HandOffResult } from '../load/clients.ts'
import type { LoadCalls } from '../load/load-process.ts'
import type { Measurement } from '../report/model.ts'
import type { Helper } from './helper-process.ts'
import { usageDuring } from './process-usage.ts'
import type { Contender } from './rounds.ts'

/**
 * Keeps a store supplied with partitions: with an empty backlog, a measurement would measure empty claims.
 */
export class Backlog {
  readonly #fill: (partitions: number) => Promise<unknown>
  #ready = 0

  constructor(fill: (partitions: number) => Promise<unknown>) {
    this.#fill = fill
  }

  /**
   * The backlog for a measurement of `seconds`, plus half, since a round may be faster than all earlier ones.
   */
  async ensureFor(rate: number, seconds: number): Promise<void> {
    const missing = Math.ceil(rate * seconds * 1.5 + 2_000) - this.#ready
    if (missing <= 0) return
    await this.#fill(missing)
    this.#ready += missing
  }

  /** For stores that can report their backlog: a measurement may take more partitions than it counts. */
  holds(partitions: number): void {
    this.#ready = partitions
  }

  taken(partitions: number): void {
    this.#ready -= partitions
  }
}

type Load = Helper<LoadCalls>

export interface HandOffContender {
  label: string
  load: Load
  /** The service whose processes are measured; several nodes may share one database. */
  watched: readonly number[]
  /** Absent for servers without a store. */
  backlog?: Backlog
  /** The expected partitions per second, before the first measurement. */
  firstGuess: number
  run(load: Load, seconds: number): Promise<HandOffResult>
}

/** A contender that hands partitions off over HTTP. Its backlog is refilled before each measurement. */
export function handOffContender(input: HandOffContender): Contender {
  let expectedRate = input.firstGuess
  return {
    label: input.label,
    async prepare(seconds) {
      await input.backlog?.ensureFor(expectedRate, seconds)
    },
    async measure(seconds): Promise<Measurement> {
      const { result, usage } = await usageDuring(input.watched, () => input.run(input.load, seconds))
      input.backlog?.taken(result.partitions)
      const rate = result.partitions / result.seconds
      expectedRate = result.ranDry ? Math.max(rate, expectedRate) * 1.5 : Math.max(rate, input.firstGuess)
      return {
        rate,
        p50Ms: result.latency.p50Ms,
        p99Ms: result.latency.p99Ms,
        serverCpuSeconds: usage.cpuSeconds,
        serverRssMb: usage.rssMb,
        clientCpuSeconds: result.clientCpuSeconds,
        ...(result.ranDry ? { remark: `backlog ended after ${result.seconds.toFixed(1)} s` } : {}),
      }
    },
  }
}

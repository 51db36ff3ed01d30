import type { LoadCalls } from '../load/load-process.ts'
import type { HandOffResult } from '../load/workloads/hand-off-result.ts'
import type { Measurement } from '../report/model.ts'
import type { Backlog } from './backlog.ts'
import type { Helper } from './helper-process.ts'
import { usageDuring } from './process-usage.ts'
import type { Contender } from './rounds.ts'

type Load = Helper<LoadCalls>

export interface HandOffContender {
  label: string
  load: Load
  /** The service whose processes are watched; several nodes may share one database. */
  watched: readonly number[]
  /** Absent for servers that answer from nothing. */
  backlog?: Backlog
  /** Partitions per second to be prepared for before anything is known. */
  firstGuess: number
  run(load: Load, seconds: number): Promise<HandOffResult>
}

/** A contender that hands partitions off over HTTP, with its backlog filled up before each measurement. */
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

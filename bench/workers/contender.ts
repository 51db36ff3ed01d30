import type { Backlog } from '../harness/hand-off-contender.ts'
import { usageDuring } from '../harness/process-usage.ts'
import type { Contender } from '../harness/rounds.ts'
import type { WorkInput, WorkResult } from './typescript-process.ts'

/** No contender is as fast, so that none finds the backlog empty. */
const MOST_PER_SECOND = 20_000

export interface WorkerContender {
  readonly label: string
  readonly input: Omit<WorkInput, 'seconds'>
  readonly backlog: Backlog
  /** The service whose processes are measured; several nodes may share one database. */
  readonly watched: readonly number[]
  work(input: WorkInput): Promise<WorkResult>
}

/** A worker that hands partitions off through a client. Its backlog is refilled before each measurement. */
export function workerContender({ label, input, backlog, watched, work }: WorkerContender): Contender {
  return {
    label,
    prepare: (seconds) => backlog.ensureFor(MOST_PER_SECOND, seconds),
    async measure(seconds) {
      const { result, usage } = await usageDuring(watched, () => work({ ...input, seconds }))
      backlog.taken(result.partitions)
      return {
        rate: result.partitions / result.seconds,
        serverCpuSeconds: usage.cpuSeconds,
        serverRssMb: usage.rssMb,
        clientCpuSeconds: result.clientCpuSeconds,
      }
    },
  }
}

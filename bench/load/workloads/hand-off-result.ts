import type { LatencySummary } from '../../harness/statistics.ts'

/** What every workload that hands partitions off reports. */
export interface HandOffResult {
  /** Partitions pulled and settled. */
  partitions: number
  seconds: number
  /** Time from writing a request to its whole answer, over all requests. */
  latency: LatencySummary
  clientCpuSeconds: number
  /** The backlog ended before the time did; `seconds` then ends with the last partition. */
  ranDry: boolean
}

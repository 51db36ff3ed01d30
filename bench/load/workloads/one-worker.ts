import { BatonClient, Worker } from '@baton/client'
import { LatencySamples } from '../../harness/statistics.ts'
import type { HandOffResult } from '../clients.ts'

export interface OneWorkerInput {
  url: string
  concurrency: number
  seconds: number
}

/** A worker as a user writes it, with the library and an empty handler. */
export async function oneWorker({ url, concurrency, seconds }: OneWorkerInput): Promise<HandOffResult> {
  const latencies = new LatencySamples()
  const client = new BatonClient({ url, onRequest: ({ millis }) => latencies.add(millis) })
  let partitions = 0
  let ranDry = true
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  let endedAt = startedAt
  const worker = new Worker(client, async () => {}, {
    concurrency,
    untilIdle: true,
    onEvent: ({ kind }) => {
      if (kind !== 'settled') return
      partitions += 1
      endedAt = performance.now()
    },
  })
  const timeIsOver = setTimeout(() => {
    ranDry = false
    void worker.stop()
  }, seconds * 1000)
  await worker.run()
  clearTimeout(timeIsOver)
  const cpu = process.cpuUsage(cpuBefore)
  return {
    partitions,
    seconds: (endedAt - startedAt) / 1000,
    latency: latencies.summary(),
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
    ranDry,
  }
}

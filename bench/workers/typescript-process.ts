import { BatonClient, Worker } from '@baton/client'
import { answerCalls } from '../harness/helper-process.ts'

export interface WorkInput {
  /** Of all nodes. */
  urls: [string, ...string[]]
  /** Handlers that run at the same time, or loops. */
  concurrency: number
  seconds: number
}

export interface WorkResult {
  partitions: number
  /** Until the last partition is settled. */
  seconds: number
  clientCpuSeconds: number
}

async function measured(work: () => Promise<number>): Promise<WorkResult> {
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const partitions = await work()
  const cpu = process.cpuUsage(cpuBefore)
  return {
    partitions,
    seconds: (performance.now() - startedAt) / 1000,
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
  }
}

/** The `Worker` of the client with a handler that does nothing. */
function worker({ urls, concurrency, seconds }: WorkInput): Promise<WorkResult> {
  return measured(async () => {
    let handled = 0
    const first = Promise.withResolvers<void>()
    const client = new BatonClient({ url: urls, instanceId: 'bench-typescript' })
    const running = new Worker(
      client,
      async () => {
        handled += 1
        first.resolve()
      },
      { concurrency },
    )
    running.start()
    await Promise.all([first.promise, new Promise((resolve) => setTimeout(resolve, seconds * 1000))])
    await running.stop()
    return handled
  })
}

/** What one writes without the client: each loop settles one partition and pulls the next in one request. */
function loop({ urls: [url], concurrency, seconds }: WorkInput): Promise<WorkResult> {
  const ask = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, init)
    if (!response.ok) throw new Error(`answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as Answer
  }
  return measured(async () => {
    const deadline = performance.now() + seconds * 1000
    let settled = 0
    const one = async () => {
      let { partitions } = await ask('/pull')
      while (partitions.length > 0) {
        const body = JSON.stringify(partitions.map(({ lease }) => ({ leaseId: lease.id, outcome: 'done' })))
        const more = performance.now() < deadline ? { prefer: 'batch=1' } : {}
        const headers = { 'content-type': 'application/json', ...more }
        const answer = await ask('/settle', { method: 'POST', headers, body })
        settled += partitions.length
        partitions = answer.partitions
      }
    }
    await Promise.all(Array.from({ length: concurrency }, one))
    return settled
  })
}

interface Answer {
  partitions: { lease: { id: string } }[]
}

const calls = { worker, loop }

export type WorkerCalls = typeof calls

answerCalls(calls)

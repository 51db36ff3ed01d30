import type { ChildProcess } from 'node:child_process'
import { BatonClient, Worker } from '@baton/client'
import { pretendedLoad, type Temperament } from './handling.ts'
import { end, spawnBaton } from './own-process.ts'

const members: readonly (Temperament & { readonly name: string; readonly concurrency: number })[] = [
  { name: 'loader-eu-1', recordsPerSecond: 42_000, concurrency: 4 },
  { name: 'loader-eu-2', recordsPerSecond: 36_000, concurrency: 4, losesRecordsEvery: 40 },
  { name: 'loader-us-1', recordsPerSecond: 28_000, concurrency: 3 },
  { name: 'loader-us-2', recordsPerSecond: 12_000, concurrency: 2 },
  { name: 'loader-flaky', recordsPerSecond: 25_000, concurrency: 2, failsEvery: 4 },
]

const CRASHING = 'loader-crashing'
const RESTARTED_AFTER_MILLIS = 12_000

/** Starts workers of different speed and reliability. Returns a function that stops them. */
export function startFleet(url: string): () => Promise<void> {
  const workers = members.map(({ name, concurrency, ...temperament }) => {
    const client = new BatonClient({ url, instanceId: name })
    return new Worker(client, pretendedLoad(temperament), { concurrency, finishWithinSeconds: 0 })
  })
  for (const worker of workers) worker.run().catch(() => {})
  const stopCrashing = keepCrashing(url)
  return async () => {
    await Promise.all([stopCrashing(), ...workers.map((worker) => worker.stop())])
  }
}

/** A process that crashes now and then, and is restarted after a while, as by a supervisor. */
function keepCrashing(url: string): () => Promise<void> {
  let child: ChildProcess | undefined
  let restart: NodeJS.Timeout | undefined
  let ended = false
  const start = () => {
    child = spawnBaton(['demo-worker', url, CRASHING], { stdio: ['pipe', 'ignore', 'inherit'] })
    child.once('exit', () => {
      if (!ended) restart = setTimeout(start, RESTARTED_AFTER_MILLIS)
    })
  }
  start()
  return async () => {
    ended = true
    clearTimeout(restart)
    if (child !== undefined) await end(child, 'SIGKILL')
  }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { BatonClient, type PartitionDescriptor } from '@baton/client'
import { onTestFinished } from 'vitest'

const MAIN = fileURLToPath(new URL('../../../packages/server/src/main.ts', import.meta.url))

export interface RunningService {
  readonly url: string
  readonly client: BatonClient
  /** Takes the service away, as a crash would. */
  readonly stop: () => Promise<void>
  /** Brings it back: the same address and data, and what flags it is given now. */
  readonly restart: (...flags: string[]) => Promise<void>
}

/** The service as people run it, for the length of a test. */
export async function startService(...flags: string[]): Promise<RunningService> {
  const data = await mkdtemp(join(tmpdir(), 'baton-browser-'))
  let running = await run(data, 0, flags)
  const stop = async () => {
    const exited = once(running.child, 'exit')
    if (running.child.exitCode === null && running.child.kill('SIGKILL')) await exited
  }
  onTestFinished(async () => {
    await stop()
    await rm(data, { recursive: true, force: true })
  })
  const { url } = running
  return {
    url,
    client: new BatonClient({ url, instanceId: 'browser-test' }),
    stop,
    restart: async (...others) => {
      await stop()
      running = await run(data, Number(new URL(url).port), others)
    },
  }
}

async function run(data: string, port: number, flags: readonly string[]) {
  const fixed = ['--port', String(port), '--data', data, '--log-level', 'warn']
  const child = spawn(process.execPath, ['--conditions=baton-source', MAIN, ...fixed, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^Baton listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) return { url, child }
  }
  throw new Error('the service ended before it listened')
}

/** Partitions of a task: so many on each level, lowest first. */
export function partitionsOf(
  taskId: string,
  levels: readonly number[],
  records = 100,
): PartitionDescriptor[] {
  return levels.flatMap((count, level) =>
    Array.from({ length: count }, (_, index) => ({
      taskId,
      computeTableName: 'results.orders',
      partition_name: `${taskId}-${level}-${index}`,
      record_count: records,
      priorityLevel: level,
    })),
  )
}

/** Pulls so many partitions and settles each. */
export async function workThrough(
  client: BatonClient,
  count: number,
  settlement: { outcome: 'done'; records?: number } | { outcome: 'failed'; reason: string; final?: boolean },
): Promise<void> {
  const { partitions } = await client.pull({ batch: count })
  await client.settle(partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', ...settlement })))
}

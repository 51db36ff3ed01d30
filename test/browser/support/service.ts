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
}

/** The service as people run it, for the length of a test. */
export async function startService(...flags: string[]): Promise<RunningService> {
  const data = await mkdtemp(join(tmpdir(), 'baton-browser-'))
  const child = spawn(
    process.execPath,
    ['--conditions=baton-source', MAIN, '--port', '0', '--data', data, '--log-level', 'warn', ...flags],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  onTestFinished(async () => {
    const exited = once(child, 'exit')
    if (child.exitCode === null && child.kill('SIGKILL')) await exited
    await rm(data, { recursive: true, force: true })
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^Baton listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) return { url, client: new BatonClient({ url, instanceId: 'browser-test' }) }
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

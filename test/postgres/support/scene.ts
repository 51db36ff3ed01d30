import { expect } from 'vitest'
import { openPostgresDisk } from '../../../packages/server/src/disk/postgres/postgres-disk.ts'
import { openEngine } from '../../../packages/server/src/handoff/engine/engine-store.ts'
import { StoreUnavailable } from '../../../packages/server/src/handoff/store.ts'
import { testPolicy } from '../../../packages/server/test/store/conformance/harness.ts'
import { Load, type LoadOptions } from './load.ts'
import { NodeProcess } from './node-process.ts'

/** Flags of a node that soon hands out lost partitions again, any number of times. */
export function startNode(name: string, databaseUrl: string, leaseMillis: number): Promise<NodeProcess> {
  return NodeProcess.start(name, [
    ...['--database-url', databaseUrl, '--lease-seconds', String(leaseMillis / 1000)],
    ...['--backoff-seconds', '0.05', '--backoff-max-seconds', '0.2', '--max-attempts', '1000'],
    ...['--log-level', 'warn'],
  ])
}

type Choice = Pick<LoadOptions, 'urls' | 'leaseMillis'> & Partial<LoadOptions>

/** One task of 2,000 partitions by default. */
export function loadOn(choice: Choice): Load {
  return new Load({ taskId: 'orders', arrays: 40, arrayLength: 50, workers: 12, workMillis: 20, ...choice })
}

/** Checks that everything was done once, and that the database agrees. */
export async function expectAllDone(load: Load, databaseUrl: string): Promise<void> {
  expect(load.findings()).toEqual([])
  while (true) {
    try {
      return await expectDoneIn(databaseUrl, load.size)
    } catch (error) {
      // A node has taken over again before the checks were complete.
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }
}

/** Takes over leadership from the nodes, and hands it back. */
async function expectDoneIn(databaseUrl: string, size: number): Promise<void> {
  const disk = await openPostgresDisk({ url: databaseUrl, node: { nodeId: 'judge', url: '' } })
  const parts = { policy: testPolicy, clock: Date.now, random: Math.random, secret: () => 'secretsecret' }
  const store = await openEngine({ disk, ...parts }).catch(async (error: unknown) => {
    await disk.close()
    throw error
  })
  try {
    const task = await store.task('orders')
    expect(task?.facts.partitions).toMatchObject({
      ...{ done: size, ready: 0, leased: 0, delayed: 0 },
    })
    expect(await store.recount()).toEqual([])
  } finally {
    await store.close().catch(() => undefined)
  }
}

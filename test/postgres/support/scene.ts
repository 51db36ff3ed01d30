import { expect } from 'vitest'
import { openPostgresStore } from '../../../packages/server/src/store/postgres/open.ts'
import { testPolicy } from '../../../packages/server/test/store/conformance/harness.ts'
import { Load, type LoadOptions } from './load.ts'
import { NodeProcess } from './node-process.ts'

/** A node that soon hands out again what was lost, however often that is. */
export function startNode(name: string, databaseUrl: string, leaseMillis: number): Promise<NodeProcess> {
  return NodeProcess.start(name, [
    ...['--database-url', databaseUrl, '--lease-seconds', String(leaseMillis / 1000)],
    ...['--backoff-seconds', '0.05', '--backoff-max-seconds', '0.2', '--max-attempts', '1000'],
    ...['--log-level', 'warn'],
  ])
}

type Choice = Pick<LoadOptions, 'urls' | 'leaseMillis'> & Partial<LoadOptions>

/** One task of 2,000 partitions, unless it is said otherwise. */
export function loadOn(choice: Choice): Load {
  return new Load({ taskId: 'orders', arrays: 40, arrayLength: 50, workers: 12, workMillis: 20, ...choice })
}

/** Everything was done once, and the database agrees. */
export async function expectAllDone(load: Load, databaseUrl: string): Promise<void> {
  expect(load.findings()).toEqual([])
  const store = await openPostgresStore({ url: databaseUrl, policy: testPolicy })
  try {
    const task = await store.task('orders')
    expect(task?.facts.partitions).toMatchObject({
      ...{ done: load.size, ready: 0, held: 0, leased: 0, delayed: 0 },
    })
    expect(await store.audit()).toEqual([])
  } finally {
    await store.close()
  }
}

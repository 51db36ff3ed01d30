import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openPostgresStore } from '../../packages/server/src/store/postgres/open.ts'
import { testPolicy } from '../../packages/server/test/store/conformance/harness.ts'
import { Load } from './support/load.ts'
import { NodeProcess } from './support/node-process.ts'
import { ReplicatedPair } from './support/replicated-pair.ts'

const LEASE_MILLIS = 2000

test('the primary dies, the standby takes over, and nothing that was acknowledged is missing', async () => {
  const pair = await ReplicatedPair.start()
  const args = [
    ...['--database-url', pair.url, '--lease-seconds', String(LEASE_MILLIS / 1000)],
    ...['--backoff-seconds', '0.05', '--backoff-max-seconds', '0.2', '--max-attempts', '1000'],
    ...['--log-level', 'warn'],
  ]
  const nodes = await Promise.all(['north', 'east'].map((name) => NodeProcess.start(name, args)))
  try {
    const load = new Load({
      urls: nodes.map((node) => node.url),
      taskId: 'orders',
      arrays: 30,
      arrayLength: 50,
      workers: 8,
      leaseMillis: LEASE_MILLIS,
      workMillis: 20,
    })
    const loading = load.run()
    loading.catch(() => {})
    while (load.doneCount < load.size * 0.4) await sleep(20)
    await pair.failOver()
    await loading
    expect(load.findings()).toEqual([])

    const store = await openPostgresStore({ url: pair.url, policy: testPolicy })
    const task = await store.task('orders')
    expect(task?.facts.partitions).toMatchObject({
      done: load.size,
      ready: 0,
      held: 0,
      leased: 0,
      delayed: 0,
    })
    expect(await store.audit()).toEqual([])
    await store.close()
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    await pair.dispose()
  }
}, 120_000)

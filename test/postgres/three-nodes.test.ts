import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openPostgresStore } from '../../packages/server/src/store/postgres/open.ts'
import { testPolicy } from '../../packages/server/test/store/conformance/harness.ts'
import { Chance } from '../chaos/support/chance.ts'
import { seed } from '../chaos/support/seed.ts'
import { Load } from './support/load.ts'
import { NodeProcess } from './support/node-process.ts'
import { PostgresServer } from './support/postgres-server.ts'

const LEASE_MILLIS = 2000

/** Waits until the load has got so far; what happens in between is up to chance. */
async function progress(load: Load, share: number): Promise<void> {
  while (load.doneCount < load.size * share) await sleep(20)
}

test(`three nodes on one database: killed, stopped, and the database restarted under them (CHAOS_SEED=${seed})`, async () => {
  const server = await PostgresServer.start()
  const { url } = await server.createDatabase()
  const args = [
    ...['--database-url', url, '--lease-seconds', String(LEASE_MILLIS / 1000)],
    ...['--backoff-seconds', '0.05', '--backoff-max-seconds', '0.2', '--max-attempts', '1000'],
    ...['--log-level', 'warn'],
  ]
  const nodes = await Promise.all(['north', 'east', 'west'].map((name) => NodeProcess.start(name, args)))
  try {
    const load = new Load({
      urls: nodes.map((node) => node.url),
      taskId: 'orders',
      arrays: 40,
      arrayLength: 50,
      workers: 12,
      leaseMillis: LEASE_MILLIS,
      workMillis: 20,
    })
    const loading = load.run()
    loading.catch(() => {})

    const chance = new Chance(seed).for('killer')
    // Killed again and again, each time another one.
    for (let round = 0; round < 3; round += 1) {
      await progress(load, 0.1 * (round + 1))
      const node = chance.pick(nodes)
      await node.kill()
      await node.startUntilItRuns()
    }

    // The database ends in the middle of everything, and comes back.
    await progress(load, 0.45)
    await server.crash()
    await sleep(300)
    await server.start()

    // A node that sleeps longer than its leases, and then goes on as if nothing had happened.
    await progress(load, 0.65)
    nodes[0]?.signal('SIGSTOP')
    await sleep(LEASE_MILLIS * 1.5)
    nodes[0]?.signal('SIGCONT')

    await loading
    expect(load.findings()).toEqual([])

    const store = await openPostgresStore({ url, policy: testPolicy })
    const task = await store.task('orders')
    expect(task?.facts.partitions).toMatchObject({
      done: load.size,
      ready: 0,
      held: 0,
      leased: 0,
      delayed: 0,
    })
    expect(await store.audit()).toEqual([])

    // Every node is seen from every node.
    for (const node of nodes) {
      const { instances } = (await (await fetch(`${node.url}/instances`)).json()) as {
        instances: { instanceId: string; role: string; status: string }[]
      }
      const services = instances.filter(({ role }) => role === 'service')
      expect(services.map(({ instanceId, status }) => `${instanceId} ${status}`).toSorted()).toEqual([
        'east up',
        'north up',
        'west up',
      ])
    }
    await store.close()
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    await server.dispose()
  }
}, 120_000)

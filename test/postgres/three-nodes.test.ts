import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Chance, seed } from '../chaos/support/chance.ts'
import { until } from '../support/until.ts'
import { PostgresServer } from './support/postgres-server.ts'
import { expectAllDone, loadOn, startNode } from './support/scene.ts'

const LEASE_MILLIS = 2000

test(`three nodes on one database: killed, stopped, and the database restarted under them (CHAOS_SEED=${seed})`, async () => {
  const server = await PostgresServer.start()
  const { url } = await server.createDatabase()
  const nodes = await Promise.all(['north', 'east', 'west'].map((name) => startNode(name, url, LEASE_MILLIS)))
  try {
    const load = loadOn({ urls: nodes.map((node) => node.url), leaseMillis: LEASE_MILLIS })
    const loading = load.run()
    loading.catch(() => {})

    const chance = new Chance(seed).for('killer')
    // Killed repeatedly, each time another node.
    for (let round = 0; round < 3; round += 1) {
      await load.reached(0.1 * (round + 1))
      const node = chance.pick(nodes)
      await node.kill()
      await node.startUntilItRuns()
    }

    // The database is stopped under load and comes back.
    await load.reached(0.45)
    await server.crash()
    await sleep(300)
    await server.start()

    // A node freezes for longer than its leases, and then continues.
    await load.reached(0.65)
    nodes[0]?.signal('SIGSTOP')
    await sleep(LEASE_MILLIS * 1.5)
    nodes[0]?.signal('SIGCONT')

    await loading
    await expectAllDone(load, url)

    // Every node is visible from every node.
    for (const node of nodes) {
      // A node that was frozen may answer 503 until it knows which node leads.
      const answer = await until(async () => {
        const answered = await fetch(`${node.url}/instances`)
        return answered.ok ? answered : undefined
      })
      const { instances } = (await answer.json()) as {
        instances: { instanceId: string; role: string; status: string }[]
      }
      const services = instances.filter(({ role }) => role === 'service')
      expect(services.map(({ instanceId, status }) => `${instanceId} ${status}`).toSorted()).toEqual([
        'east up',
        'north up',
        'west up',
      ])
    }
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    await server.dispose()
  }
}, 120_000)

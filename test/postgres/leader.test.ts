import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect, test } from 'vitest'
import type { NodeProcess } from './support/node-process.ts'
import { PostgresServer } from './support/postgres-server.ts'
import { expectAllDone, loadOn, startNode } from './support/scene.ts'

const LEASE_MILLIS = 2000

test('when the leader is killed, stopped gracefully or frozen, another node takes over and nothing is lost', async () => {
  const server = await PostgresServer.start()
  const { url } = await server.createDatabase()
  const nodes = await Promise.all(['north', 'east', 'west'].map((name) => startNode(name, url, LEASE_MILLIS)))
  const database = new pg.Client({ connectionString: url })
  await database.connect()
  const leader = async (): Promise<NodeProcess> => {
    while (true) {
      const { rows } = await database.query('SELECT leader_url FROM baton.head')
      const found = nodes.find((node) => node.url === rows[0]?.leader_url)
      if (found !== undefined) return found
      await sleep(10)
    }
  }
  const anotherThan = async (before: NodeProcess): Promise<NodeProcess> => {
    while (true) {
      const now = await leader()
      if (now !== before) return now
      await sleep(10)
    }
  }
  try {
    const load = loadOn({ urls: nodes.map((node) => node.url), leaseMillis: LEASE_MILLIS })
    const loading = load.run()
    loading.catch(() => {})

    for (const share of [0.1, 0.2, 0.3]) {
      await load.reached(share)
      const killed = await leader()
      await killed.kill()
      await anotherThan(killed)
      await killed.startUntilItRuns()
    }

    await load.reached(0.45)
    const stopped = await leader()
    stopped.signal('SIGTERM')
    await anotherThan(stopped)
    await stopped.kill()
    await stopped.startUntilItRuns()

    // It wakes up, finds that it was deposed, and follows.
    await load.reached(0.6)
    const frozen = await leader()
    frozen.signal('SIGSTOP')
    await anotherThan(frozen)
    frozen.signal('SIGCONT')

    await loading
    // The node that was frozen last may still have to find the leader.
    for (const node of nodes) {
      const readiness = async () => (await fetch(`${node.url}/readyz`)).status
      await expect.poll(readiness, { timeout: 60_000 }).toBe(200)
    }
    await expectAllDone(load, url)
    expect(nodes.map(({ ends }) => ends)).toEqual([0, 0, 0])
  } finally {
    await database.end()
    await Promise.all(nodes.map((node) => node.kill()))
    await server.dispose()
  }
})

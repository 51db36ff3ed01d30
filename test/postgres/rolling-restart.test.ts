import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { NodeProcess } from './support/node-process.ts'
import { PostgresServer } from './support/postgres-server.ts'

const CLIENTS = 8
const PAIRS_BETWEEN_STOPS = 100

interface Pulled {
  readonly partitions: readonly { readonly lease: { readonly id: string } }[]
}

/**
 * Clients without retries. They send to any node that is not about to stop, as a load balancer would, and
 * each request has its own connection: a node that stops closes idle ones.
 */
class Clients {
  readonly #nodes: readonly NodeProcess[]
  readonly failures: string[] = []
  #isStopping = false
  pairs = 0

  constructor(nodes: readonly NodeProcess[]) {
    this.#nodes = nodes
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, (_, at) => this.#pullAndSettle(at)))
  }

  stop(): void {
    this.#isStopping = true
  }

  async #pullAndSettle(from: number): Promise<void> {
    for (let turn = from; !this.#isStopping; turn += 1) {
      const pulled = (await this.#send(turn, '/pull')) as Pulled | undefined
      const leases = pulled?.partitions.map(({ lease }) => ({ leaseId: lease.id, outcome: 'done' }))
      if (leases !== undefined && leases.length > 0) await this.#send(turn + 1, '/settle', leases)
      this.pairs += 1
      await sleep(20)
    }
  }

  async #send(turn: number, path: string, body?: unknown): Promise<unknown> {
    const serving = this.#nodes.filter(({ isAway }) => !isAway)
    const node = serving[turn % serving.length] as NodeProcess
    try {
      const answer = await fetch(`${node.url}${path}`, asJson(body, { connection: 'close' }))
      const text = await answer.text()
      if (answer.status === 200) return JSON.parse(text)
      this.failures.push(`${node.name} ${path}: ${answer.status} ${text}`)
    } catch (error) {
      this.failures.push(`${node.name} ${path}: ${error} ${(error as Error).cause}`)
    }
    return undefined
  }
}

const asJson = (body: unknown, headers: Record<string, string> = {}): RequestInit =>
  body === undefined
    ? { headers }
    : {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }

test('a rolling restart of all nodes answers every request', async () => {
  const server = await PostgresServer.start()
  const { url } = await server.createDatabase()
  const nodes = await Promise.all(
    ['north', 'east', 'west'].map((name) =>
      NodeProcess.start(name, ['--database-url', url, '--log-level', 'warn']),
    ),
  )
  const clients = new Clients(nodes)
  try {
    const descriptors = Array.from({ length: 5000 }, (_, index) => ({
      taskId: 'orders',
      computeTableName: 'results.orders',
      partition_name: `orders-0-${index}`,
      record_count: 1,
      priorityLevel: 0,
    }))
    expect((await fetch(`${nodes[0]?.url}/call-back`, asJson(descriptors))).status).toBe(200)
    const running = clients.run()
    for (const node of nodes) {
      const enough = clients.pairs + PAIRS_BETWEEN_STOPS
      await until(() => clients.pairs >= enough)
      node.isAway = true
      await node.stop()
      await node.startUntilItRuns()
      node.isAway = false
    }
    clients.stop()
    await running
    expect(clients.failures).toEqual([])
    for (const { url: from } of nodes) {
      const { instances } = (await (await fetch(`${from}/instances`)).json()) as {
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
    clients.stop()
    await Promise.all(nodes.map((node) => node.kill()))
    await server.dispose()
  }
})

import { setTimeout as sleep } from 'node:timers/promises'
import { FaultyLink } from '../../postgres/support/faulty-link.ts'
import { LaggingPair } from '../../postgres/support/lagging-pair.ts'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { PostgresServer } from '../../postgres/support/postgres-server.ts'
import { auditPostgres } from './audit.ts'
import {
  blackHole,
  crashDatabase,
  cutRequests,
  OUTAGE,
  partWithAnswers,
  stall,
  terminateBackends,
} from './database-disturbances.ts'
import { type Disturbance, type Fleet, settings } from './fleet.ts'
import { depose, freezeNode, killNode, visit } from './node-disturbances.ts'
import type { Span } from './order-checks.ts'

/** Three nodes on one PostgreSQL. */
export function startPostgresFleet(leaseMillis: number): Promise<Fleet> {
  return startOnOne(leaseMillis, ['north', 'east', 'west'])
}

/** One node, which others join from time to time. */
export function startLoneFleet(leaseMillis: number): Promise<Fleet> {
  return startOnOne(leaseMillis, ['alone'])
}

async function startOnOne(leaseMillis: number, names: readonly string[]): Promise<Fleet> {
  const server = await PostgresServer.start()
  const nodes = new LinkedNodes(leaseMillis)
  const dispose = () => nodes.dispose().then(() => server.dispose())
  try {
    const { name: database, url } = await server.createDatabase()
    const residents = await Promise.all(names.map((name) => nodes.prepare(name, url)))
    const visitors = residents.length === 1 ? [await nodes.prepare('visitor', url)] : []
    for (const visitor of visitors) visitor.isAway = true
    await Promise.all(residents.map((node) => node.start()))
    return {
      nodes: nodes.all,
      disturbances: [
        killNode(residents),
        freezeNode(residents, leaseMillis),
        terminateBackends(server, database),
        cutRequests(nodes.links),
        stall(nodes.links, leaseMillis),
        blackHole(nodes.links, leaseMillis),
        partWithAnswers(nodes.links),
        crashDatabase(server),
        ...(residents.length > 1 ? [depose(residents)] : []),
        ...visitors.map((visitor) => visit(residents, visitor)),
      ],
      audit: async () => {
        await nodes.kill()
        return auditPostgres(url)
      },
      dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** Two nodes on a primary whose standby lacks the last commits when it takes over. */
export async function startLossyFleet(leaseMillis: number): Promise<Fleet> {
  const pair = await LaggingPair.start()
  const nodes = new LinkedNodes(leaseMillis)
  const dispose = () => nodes.dispose().then(() => pair.dispose())
  const lostTails: Span[] = []
  try {
    const url = () => pair.primary.url(pair.database)
    const residents = await Promise.all(['north', 'east'].map((name) => nodes.prepare(name, url())))
    await Promise.all(residents.map((node) => node.start()))
    return {
      nodes: nodes.all,
      disturbances: [killNode(residents), loseTail(pair, nodes.links, lostTails)],
      lostTails,
      audit: async () => {
        await nodes.kill()
        return auditPostgres(url())
      },
      dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** The primary dies with commits that the standby does not have, as in any asynchronous fail-over. */
function loseTail(pair: LaggingPair, links: readonly FaultyLink[], lostTails: Span[]): Disturbance {
  let isFollowed = true
  return {
    name: 'tail',
    explains: OUTAGE,
    happen: async (chance) => {
      if (!isFollowed) await pair.renewStandby()
      isFollowed = false
      lostTails.push(await pair.failOver(() => sleep(chance.between(100, 1500))))
      for (const link of links) {
        link.upstream = pair.primary.port
        link.reset()
      }
    },
  }
}

/** Nodes, each with its own faulty link to PostgreSQL. */
class LinkedNodes {
  readonly links: FaultyLink[] = []
  readonly all: NodeProcess[] = []
  readonly #leaseMillis: number

  constructor(leaseMillis: number) {
    this.#leaseMillis = leaseMillis
  }

  async prepare(name: string, url: string): Promise<NodeProcess> {
    const link = await FaultyLink.start(Number(new URL(url).port))
    this.links.push(link)
    const linked = new URL(url)
    linked.port = String(link.port)
    const node = await NodeProcess.prepare(name, [
      ...settings(this.#leaseMillis),
      '--database-url',
      linked.href,
    ])
    this.all.push(node)
    return node
  }

  async kill(): Promise<void> {
    await Promise.all(this.all.map((node) => node.kill()))
  }

  async dispose(): Promise<void> {
    await this.kill()
    await Promise.all(this.links.map((link) => link.stop()))
  }
}

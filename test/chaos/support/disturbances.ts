import { setTimeout as sleep } from 'node:timers/promises'
import type { Cut, CuttingProxy } from '../../postgres/support/cutting-proxy.ts'
import type { NodeProcess } from '../../postgres/support/node-process.ts'
import type { PostgresServer } from '../../postgres/support/postgres-server.ts'
import type { Chance } from './chance.ts'

/** Something bad that happens to a fleet, and is over when the promise is kept. */
export interface Disturbance {
  readonly name: string
  happen(chance: Chance): Promise<void>
}

/** In the middle of whatever it does. Others have to finish it, until it is back. */
export function killNode(nodes: readonly NodeProcess[]): Disturbance {
  return {
    name: 'kill',
    happen: async (chance) => {
      const node = chance.pick(nodes)
      await node.kill()
      await sleep(chance.below(500))
      await node.startUntilItRuns()
    },
  }
}

/** Longer than its leases run; then it goes on as if nothing had happened, and believes what it knew before. */
export function freezeNode(nodes: readonly NodeProcess[], millis: number): Disturbance {
  return {
    name: 'freeze',
    happen: async (chance) => {
      const node = chance.pick(nodes)
      node.signal('SIGSTOP')
      await sleep(millis)
      node.signal('SIGCONT')
    },
  }
}

/** Another node comes, is asked like the others, and leaves. Perhaps it comes because one of them is frozen, and takes over from it. */
export function visit(nodes: NodeProcess[], visitor: NodeProcess): Disturbance {
  return {
    name: 'visit',
    happen: async (chance) => {
      const frozen = chance.happens(0.5) ? chance.pick(nodes) : undefined
      frozen?.signal('SIGSTOP')
      await visitor.startUntilItRuns()
      nodes.push(visitor)
      await sleep(chance.between(200, 1000))
      frozen?.signal('SIGCONT')
      await sleep(chance.between(200, 1000))
      nodes.splice(nodes.indexOf(visitor), 1)
      await visitor.kill()
    },
  }
}

/** As an administrator or a fail-over ends sessions: some of those that are at work. */
export function terminateBackends(server: PostgresServer, database: string): Disturbance {
  return {
    name: 'terminate',
    happen: async (chance) => {
      for (let round = 0; round < 5; round += 1) {
        await server
          .query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'baton' AND datname = '${database}'
             ORDER BY state = 'active' DESC, random() LIMIT ${chance.between(1, 3)}`,
          )
          // It may just be starting again.
          .catch(() => {})
        await sleep(chance.between(50, 300))
      }
    },
  }
}

const CUTS = 40
const CUT_SHARE = 0.2
/** When nothing is committed for so long there is nothing to cut. */
const CUT_MILLIS = 10_000

/** Connections break around the commit: before the server has heard of it, or before the node has. */
export function cutCommits(proxies: readonly CuttingProxy[]): Disturbance {
  const count = () => proxies.reduce((sum, { cuts }) => sum + cuts.before + cuts.after, 0)
  return {
    name: 'cut',
    happen: async (chance) => {
      const [enough, latest] = [count() + CUTS, Date.now() + CUT_MILLIS]
      const cut = (): Cut | null =>
        chance.happens(CUT_SHARE) ? (chance.happens(0.6) ? 'after' : 'before') : null
      for (const proxy of proxies) {
        proxy.isPolite = chance.happens(0.5)
        proxy.decide = () => (count() < enough ? cut() : null)
      }
      while (count() < enough && Date.now() < latest) await sleep(10)
      for (const proxy of proxies) proxy.decide = () => null
    },
  }
}

/** As a power cut ends it, and then it recovers. */
export function crashDatabase(server: PostgresServer): Disturbance {
  return {
    name: 'crash',
    happen: async (chance) => {
      await server.crash()
      await sleep(chance.below(500))
      await server.start()
    },
  }
}

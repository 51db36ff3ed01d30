import { setTimeout as sleep } from 'node:timers/promises'
import type { Cut, FaultyLink } from '../../postgres/support/faulty-link.ts'
import type { PostgresServer } from '../../postgres/support/postgres-server.ts'
import type { Disturbance } from './fleet.ts'

/** A node says once when it finds that its database does not answer, and then answers 503. */
export const OUTAGE = [/"msg":"the store cannot commit"/]

/** As an administrator or a fail-over ends sessions: some of those that are at work. */
export function terminateBackends(server: PostgresServer, database: string): Disturbance {
  return {
    name: 'terminate',
    explains: OUTAGE,
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
const CUT_SHARE = 0.1
/** When nothing is asked for so long there is nothing to cut. */
const CUT_MILLIS = 10_000

/** Connections break around a request: before the server has heard of it, or before the node has heard the answer. */
export function cutRequests(links: readonly FaultyLink[]): Disturbance {
  const count = () => links.reduce((sum, { cuts }) => sum + cuts, 0)
  return {
    name: 'cut',
    explains: OUTAGE,
    happen: async (chance) => {
      const [enough, latest] = [count() + CUTS, Date.now() + CUT_MILLIS]
      const cut = (): Cut | null =>
        chance.happens(CUT_SHARE) ? (chance.happens(0.6) ? 'after' : 'before') : null
      for (const link of links) {
        link.isPolite = chance.happens(0.5)
        link.decide = () => (count() < enough ? cut() : null)
      }
      while (count() < enough && Date.now() < latest) await sleep(10)
      for (const link of links) {
        link.isPolite = false
        link.decide = () => null
      }
    },
  }
}

/** Everything that is sent arrives late, in both directions: mostly a blink, at times longer than a lease. */
export function stall(links: readonly FaultyLink[], leaseMillis: number): Disturbance {
  return {
    name: 'stall',
    explains: OUTAGE,
    happen: async (chance) => {
      for (let round = 0; round < 8; round += 1) {
        const link = chance.pick(links)
        link.hold()
        await sleep(round === 0 ? leaseMillis * 1.5 : chance.between(1, 60))
        link.letGo()
        await sleep(chance.below(60))
      }
    },
  }
}

/** The connections of a node carry nothing any more and do not end, as when a firewall forgets them; in the end they are reset. */
export function blackHole(links: readonly FaultyLink[], leaseMillis: number): Disturbance {
  return {
    name: 'hole',
    explains: OUTAGE,
    happen: async (chance) => {
      const reset = chance.pick(links).swallow()
      await sleep(chance.between(leaseMillis, leaseMillis * 3))
      reset()
    },
  }
}

/** Answers, or the first of them, come in one piece with the end of their connection, after they were held for a moment. */
export function partWithAnswers(links: readonly FaultyLink[]): Disturbance {
  return {
    name: 'part',
    explains: OUTAGE,
    happen: async (chance) => {
      for (let round = 0; round < 12; round += 1) {
        const part = chance.pick(links).holdAnswers()
        await sleep(chance.between(1, 40))
        part((answers) => chance.between(Math.min(1, answers), answers))
        await sleep(chance.between(20, 120))
      }
    },
  }
}

/** As a power cut ends it, and then it recovers. */
export function crashDatabase(server: PostgresServer): Disturbance {
  return {
    name: 'crash',
    explains: OUTAGE,
    happen: async (chance) => {
      await server.crash()
      await sleep(chance.below(500))
      await server.start()
    },
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Cut, FaultyLink } from '../../postgres/support/faulty-link.ts'
import type { PostgresServer } from '../../postgres/support/postgres-server.ts'
import type { Disturbance } from './fleet.ts'

/** A node logs once that its database does not answer, and then answers 503. */
export const OUTAGE = [/"msg":"the store cannot commit"/]

/** Ends some of the active sessions, as an administrator or a fail-over does. */
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
          // The server may just be restarting.
          .catch(() => {})
        await sleep(chance.between(50, 300))
      }
    },
  }
}

const CUTS = 40
const CUT_SHARE = 0.1
/** If no request is sent for this long, there is no connection to cut. */
const CUT_MILLIS = 10_000

/**
 * Connections break around a request: before the server receives it, or before the node receives the answer.
 */
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

/** Everything arrives late, in both directions: mostly by little, at times by more than a lease. */
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

/**
 * The connections of a node carry no data and do not close, as when a firewall drops their state; in the end
 * they are reset.
 */
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

/**
 * Holds answers for a moment, then delivers all or the first of them in one packet with the end of their
 * connection.
 */
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

/** Ends the server as a power cut does, and lets it recover. */
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

import { setTimeout as sleep } from 'node:timers/promises'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { auditPostgres } from '../support/audit.ts'
import { OUTAGE } from '../support/database-disturbances.ts'
import { type Disturbance, type Fleet, settings } from '../support/fleet.ts'
import { PatroniCluster } from './patroni-cluster.ts'
import type { PatroniMember } from './patroni-member.ts'

/** Many times the duration of a fail-over. */
const FAIL_OVER_MILLIS = 60_000

/** Three nodes on three PostgreSQL servers, one of which is always the primary, chosen by Patroni. */
export async function startPatroniFleet(leaseMillis: number, tell: (line: string) => void): Promise<Fleet> {
  const cluster = await PatroniCluster.start()
  const nodes: NodeProcess[] = []
  const dispose = async () => {
    await Promise.all(nodes.map((node) => node.kill()))
    await cluster.dispose()
  }
  try {
    for (const name of ['north', 'east', 'west'])
      nodes.push(await NodeProcess.prepare(name, [...settings(leaseMillis), '--database-url', cluster.url]))
    await Promise.all(nodes.map((node) => node.start()))
    const kill = (name: string, how: (primary: PatroniMember) => Promise<void>) =>
      killPrimary(cluster, { name, how, tell })
    return {
      nodes,
      disturbances: [
        kill('postgres', (primary) => primary.killPostmaster()),
        kill('patroni', (primary) => primary.killPatroni()),
        kill('machine', (primary) => primary.killEverything()),
      ],
      audit: async () => {
        await Promise.all(nodes.map((node) => node.kill()))
        return auditPostgres(cluster.url)
      },
      dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

interface Kill {
  readonly name: string
  readonly how: (primary: PatroniMember) => Promise<void>
  readonly tell: (line: string) => void
}

/**
 * The synchronous standby takes over. The old primary returns as a standby, without the commits that only it
 * had.
 */
function killPrimary(cluster: PatroniCluster, { name, how, tell }: Kill): Disturbance {
  return {
    name,
    explains: OUTAGE,
    happen: async (chance) => {
      const primary = await cluster.synchronousPrimary()
      const killedAt = Date.now()
      const elapsed = () => `${((Date.now() - killedAt) / 1000).toFixed(1)} s`
      await how(primary)
      const successor = await cluster.successorOf(primary, FAIL_OVER_MILLIS)
      const after = elapsed()
      const told = async () => {
        if (successor === undefined) return tell(`${primary.name} was not replaced within ${after}`)
        await successor.untilItCommits(FAIL_OVER_MILLIS)
        tell(`${successor.name} replaced ${primary.name} after ${after}, and commits after ${elapsed()}`)
      }
      const broughtBack = async () => {
        // If only Patroni died, two servers accept writes for this long. One of them has no standby that
        // confirms commits.
        await sleep(chance.below(3000))
        if (!primary.isSupervised) primary.start()
      }
      await Promise.all([told(), broughtBack()])
    },
  }
}

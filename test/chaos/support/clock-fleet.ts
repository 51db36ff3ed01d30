import { setTimeout as sleep } from 'node:timers/promises'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { PostgresServer } from '../../postgres/support/postgres-server.ts'
import { auditPostgres } from './audit.ts'
import { terminateBackends } from './database-disturbances.ts'
import { FalseClock } from './false-clock.ts'
import { type Disturbance, type Fleet, settings } from './fleet.ts'
import { freezeNode, killNode } from './node-disturbances.ts'

/**
 * Three nodes on one PostgreSQL. Each has its own clock, which is set ahead and back while leadership
 * changes.
 */
export async function startClockFleet(leaseMillis: number): Promise<Fleet> {
  const server = await PostgresServer.start()
  const { name: database, url } = await server.createDatabase()
  const nodes: NodeProcess[] = []
  const clocks: FalseClock[] = []
  const kill = async () => void (await Promise.all(nodes.map((node) => node.kill())))
  const dispose = async () => {
    await kill()
    await Promise.all(clocks.map((clock) => clock.dispose()))
    await server.dispose()
  }
  try {
    for (const name of ['north', 'east', 'west']) {
      const clock = await FalseClock.create()
      clocks.push(clock)
      const args = [...settings(leaseMillis), '--database-url', url]
      nodes.push(await NodeProcess.prepare(name, args, clock.environment))
    }
    await Promise.all(nodes.map((node) => node.start()))
    return {
      nodes,
      disturbances: [
        jump(clocks),
        killNode(nodes),
        freezeNode(nodes, leaseMillis),
        terminateBackends(server, database),
      ],
      audit: async () => {
        await kill()
        return auditPostgres(url)
      },
      dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** By less than a lease, or by hours. Some seconds later it may be corrected. */
function jump(clocks: readonly FalseClock[]): Disturbance {
  return {
    name: 'jump',
    happen: async (chance) => {
      const clock = chance.pick(clocks)
      const most = chance.pick([1, 60, 86_400])
      await clock.set(chance.between(-most, most))
      await sleep(chance.between(500, 3000))
      if (chance.happens(0.5)) await clock.set(0)
    },
  }
}

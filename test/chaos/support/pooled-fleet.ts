import { setTimeout as sleep } from 'node:timers/promises'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { PostgresServer } from '../../postgres/support/postgres-server.ts'
import { auditPostgres } from './audit.ts'
import { crashDatabase, OUTAGE, terminateBackends } from './database-disturbances.ts'
import { type Disturbance, type Fleet, settings } from './fleet.ts'
import { freezeNode, killNode } from './node-disturbances.ts'
import { PgBouncer } from './pgbouncer.ts'

/** Three nodes that reach PostgreSQL through a PgBouncer in transaction mode. */
export async function startPooledFleet(leaseMillis: number): Promise<Fleet> {
  const server = await PostgresServer.start()
  const { name: database, url } = await server.createDatabase()
  const bouncer = await PgBouncer.start(server.port)
  const nodes: NodeProcess[] = []
  const kill = async () => void (await Promise.all(nodes.map((node) => node.kill())))
  const dispose = async () => {
    await kill()
    await bouncer.dispose()
    await server.dispose()
  }
  try {
    const pooled = new URL(url)
    pooled.port = String(bouncer.port)
    for (const name of ['north', 'east', 'west'])
      nodes.push(await NodeProcess.prepare(name, [...settings(leaseMillis), '--database-url', pooled.href]))
    await Promise.all(nodes.map((node) => node.start()))
    return {
      nodes,
      disturbances: [
        killNode(nodes),
        freezeNode(nodes, leaseMillis),
        terminateBackends(server, database),
        crashDatabase(server),
        killPooler(bouncer),
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

/** All connections of all nodes close at once. Running statements continue in PostgreSQL or end with them. */
function killPooler(bouncer: PgBouncer): Disturbance {
  return {
    name: 'pooler',
    explains: OUTAGE,
    happen: async (chance) => {
      await bouncer.kill()
      await sleep(chance.below(500))
      await bouncer.start()
    },
  }
}

import { openPostgresStore } from '../../../packages/server/src/store/postgres/open.ts'
import { testPolicy } from '../../../packages/server/test/store/conformance/test-policy.ts'
import { CuttingProxy } from '../../postgres/support/cutting-proxy.ts'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { PostgresServer } from '../../postgres/support/postgres-server.ts'
import { crashDatabase, cutCommits, freezeNode, killNode, terminateBackends, visit } from './disturbances.ts'
import { type Fleet, settings } from './fleet.ts'

/** Three nodes on one PostgreSQL. */
export function startPostgresFleet(leaseMillis: number): Promise<Fleet> {
  return startFleet(leaseMillis, ['north', 'east', 'west'], '')
}

/** One node that has PostgreSQL to itself most of the time. */
export function startLoneFleet(leaseMillis: number): Promise<Fleet> {
  return startFleet(leaseMillis, ['alone'], '?alone=whenever-possible')
}

/** Each of the nodes reaches PostgreSQL through a proxy that can cut its connections. */
async function startFleet(leaseMillis: number, names: readonly string[], parameters: string): Promise<Fleet> {
  const server = await PostgresServer.start()
  const proxies: CuttingProxy[] = []
  /** Those that requests are sent to: visitors only while they are there. */
  const nodes: NodeProcess[] = []
  const prepared: NodeProcess[] = []
  const dispose = async () => {
    await Promise.all(prepared.map((node) => node.kill()))
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    await server.dispose()
  }
  try {
    const { name: database, url } = await server.createDatabase()
    const prepare = async (name: string) => {
      const proxy = await CuttingProxy.start(server.port)
      proxies.push(proxy)
      const throughProxy = url.replace(`:${server.port}/`, `:${proxy.port}/`)
      const args = [...settings(leaseMillis), '--database-url', throughProxy + parameters]
      const node = await NodeProcess.prepare(name, args)
      prepared.push(node)
      return node
    }
    const residents = await Promise.all(names.map(prepare))
    const visitors = residents.length === 1 ? [await prepare('visitor')] : []
    await Promise.all(residents.map((node) => node.start()))
    nodes.push(...residents)
    return {
      nodes,
      disturbances: [
        killNode(residents),
        freezeNode(residents, leaseMillis * 3),
        terminateBackends(server, database),
        cutCommits(proxies),
        crashDatabase(server),
        ...visitors.map((visitor) => visit(nodes, visitor)),
      ],
      audit: async () => {
        await Promise.all(prepared.map((node) => node.kill()))
        const store = await openPostgresStore({ url, policy: testPolicy })
        try {
          return await store.audit()
        } finally {
          await store.close()
        }
      },
      dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

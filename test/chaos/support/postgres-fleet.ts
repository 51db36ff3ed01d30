import { openPostgresStore } from '../../../packages/server/src/store/postgres/store.ts'
import { testPolicy } from '../../../packages/server/test/store/conformance/test-policy.ts'
import { CuttingProxy } from '../../postgres/support/cutting-proxy.ts'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { PostgresServer } from '../../postgres/support/postgres-server.ts'
import { crashDatabase, cutCommits, freezeNode, killNode, terminateBackends } from './disturbances.ts'
import { type Fleet, settings } from './fleet.ts'

const NAMES = ['north', 'east', 'west']

/** Three nodes on one PostgreSQL, each of which reaches it through a proxy that can cut its connections. */
export async function startPostgresFleet(leaseMillis: number): Promise<Fleet> {
  const server = await PostgresServer.start()
  const proxies: CuttingProxy[] = []
  const nodes: NodeProcess[] = []
  const dispose = async () => {
    await Promise.all(nodes.map((node) => node.kill()))
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    await server.dispose()
  }
  try {
    const { name: database, url } = await server.createDatabase()
    const start = async (name: string) => {
      const proxy = await CuttingProxy.start(server.port)
      proxies.push(proxy)
      const throughProxy = url.replace(`:${server.port}/`, `:${proxy.port}/`)
      nodes.push(await NodeProcess.start(name, [...settings(leaseMillis), '--database-url', throughProxy]))
    }
    await Promise.all(NAMES.map(start))
    return {
      nodes,
      disturbances: [
        killNode(nodes),
        freezeNode(nodes, leaseMillis * 3),
        terminateBackends(server, database),
        cutCommits(proxies),
        crashDatabase(server),
      ],
      audit: async () => {
        await Promise.all(nodes.map((node) => node.kill()))
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

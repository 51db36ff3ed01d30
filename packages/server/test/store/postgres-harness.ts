import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import type { SharedDisk } from '../../src/handoff/disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import { CleanDatabases } from '../support/clean-databases.ts'
import { recount } from '../support/recount.ts'
import type { StoreHarness } from './conformance/harness.ts'

const node = { nodeId: 'node', url: '' }

/**
 * The engine on a real PostgreSQL. It is reopened by another node, which takes over from one that was not
 * closed. The first node keeps its sessions for the next test on its database, because new sessions and their
 * query plans cost more than most tests.
 */
export function postgresHarness(): StoreHarness {
  let server: PostgresServer
  let databases: CleanDatabases
  const firstNodes = new Map<string, LastingDisk>()
  beforeAll(async () => {
    server = await PostgresServer.start()
    databases = await CleanDatabases.on(server)
  })
  afterAll(async () => {
    await Promise.all([...firstNodes.values()].map(({ end }) => end()))
    await databases.dispose()
    await server.dispose()
  })
  return {
    name: 'engine on PostgreSQL',
    async open({ policy, clock, openWork }) {
      const { url, giveBack } = await databases.take()
      const firstNode = firstNodes.get(url) ?? lasting(await openPostgresDisk({ url, node }))
      firstNodes.set(url, firstNode)
      let { disk } = firstNode
      const openStore = (changed = policy) => {
        const secret = () => randomBytes(12).toString('base64url')
        return openEngine({
          disk,
          policy: changed,
          clock: clock.now,
          random: Math.random,
          secret,
          openWork,
          limits: openWork?.limits ?? {},
        })
      }
      let store = await openStore()
      return {
        get store() {
          return store
        },
        async reopen(changed = policy) {
          const before = disk
          await store.probe()
          disk = await openPostgresDisk({ url, node })
          store = await openStore(changed)
          await before.close()
        },
        recount: () => recount({ databaseUrl: url }),
        async dispose() {
          await store.close()
          giveBack()
        },
      }
    },
  }
}

interface LastingDisk {
  readonly disk: SharedDisk
  end(): Promise<void>
}

/** Closing it leaves its sessions open until the end of the tests. */
function lasting(disk: SharedDisk): LastingDisk {
  const end = disk.close.bind(disk)
  disk.close = async () => undefined
  return { disk, end }
}

import { expect, test } from 'vitest'
import { localServer } from '../../../../test/support/local-server.ts'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { openCluster } from '../../src/cluster/open-cluster.ts'
import { diskDatabases } from '../disk/postgres/support.ts'

const databases = diskDatabases()

test('a node that is stopped while it reads the leader row does not follow that leader', async () => {
  let requests = 0
  const { url } = await localServer(() => {
    requests += 1
  })
  const database = await databases.create()
  const [reads, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { store, join } = await openCluster({
    openDisk: async (node) => {
      const disk = await database.disk({ node })
      const readLeaderRow = disk.readLeaderRow.bind(disk)
      disk.readLeaderRow = async () => {
        const row = await readLeaderRow()
        reads.resolve()
        await read.promise
        return { ...row, term: 'term', leader: { nodeId: 'leader', url } }
      }
      return disk
    },
    openEngine: () => Promise.reject(new Error('this node never leads')),
    log: quiet,
  })
  const joined = join('http://127.0.0.1:1')
  await reads.promise
  const closed = store.close()
  read.resolve()
  await Promise.all([joined, closed])
  expect(requests).toBe(0)
})

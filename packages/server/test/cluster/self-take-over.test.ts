import { expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { openCluster } from '../../src/cluster/open-cluster.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import { type HandOffBatch, StoreUnavailable } from '../../src/handoff/store.ts'
import { diskDatabases } from '../disk/postgres/support.ts'
import { batchedCallBack, some } from '../store/conformance/driver.ts'
import { testPolicy } from '../store/conformance/harness.ts'

const databases = diskDatabases()

const empty: HandOffBatch = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }
const calling = { ...empty, callBacks: [batchedCallBack('a', some(0, 2))] }
const one = { instance: null, batch: 1, records: null, key: null, tables: null, tasks: null }
const pulling = { ...empty, pulls: [one] }

test('a leader that takes over from itself announces it before a sweep, because the clock may have jumped', async () => {
  const database = await databases.create()
  let setAhead = 0
  let fails = false
  const cluster = await openCluster({
    openDisk: async (node) => {
      const disk = await database.disk({ node })
      const [open, append] = [disk.open.bind(disk), disk.append.bind(disk)]
      disk.open = async (from) => {
        const opened = await open(from)
        return { ...opened, now: opened.now + setAhead }
      }
      disk.append = async (entry) => {
        if (fails) throw new StoreUnavailable('store_unavailable', 'the connection was lost')
        return append(entry)
      }
      return disk
    },
    openEngine: (parts) =>
      openEngine({ ...parts, policy: testPolicy, random: Math.random, secret: () => 'secret-secret-16' }),
    log: quiet,
  })
  const { store } = cluster
  const told: string[] = []
  store.cluster?.onLeadership((leads) => told.push(leads ? 'leads' : 'follows'))
  await cluster.join('http://127.0.0.1:1')
  await store.runBatch(calling)
  const before = (await store.runBatch(pulling)).pulls[0]?.partitions[0]?.lease
  expect(told).toEqual(['leads'])

  fails = true
  await expect(store.runBatch(pulling)).rejects.toThrow('the connection was lost')
  fails = false
  setAhead = 10 * testPolicy.leaseMillis
  const mayExpireLeases = () => {
    told.push('sweeps')
    return !told.slice(1).includes('leads')
  }
  expect(await store.sweep({ limit: 100, mayExpireLeases })).toMatchObject({ expired: 0 })
  expect(told).toEqual(['leads', 'leads', 'sweeps'])

  const after = (await store.runBatch(pulling)).pulls[0]?.partitions[0]?.lease
  expect((after?.expiresAt ?? 0) - (before?.expiresAt ?? 0)).toBeGreaterThanOrEqual(setAhead)
  await store.close()
})

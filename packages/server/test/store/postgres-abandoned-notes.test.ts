import { expect, onTestFinished, test } from 'vitest'
import { CuttingProxy } from '../../../../test/postgres/support/cutting-proxy.ts'
import type { HandedOut } from '../../src/handoff/store.ts'
import { type Driver, leaseOf, settlement, some } from './conformance/driver.ts'
import { sharedDatabases } from './support/shared-databases.ts'

const databases = sharedDatabases()

const leasesOf = (partitions: readonly HandedOut[]) => partitions.map(({ lease }) => lease?.id ?? '')

async function settleAll(node: Driver, leases: readonly string[]) {
  const settlements = leases.map((id) => ({ lease: leaseOf(id), order: settlement() }))
  return (await node.batch({ settles: [{ instance: null, settlements }] })).settles[0]
}

test('a settle is kept whose answer comes in one packet with the end of the session', async () => {
  const database = await databases.create()
  const proxy = await CuttingProxy.start(databases.server.port)
  onTestFinished(() => proxy.stop())
  const node = await database.open({ port: proxy.port })
  await node.callBack('a', some(0, 600))
  const before = await database.goAlone(node, 'a')
  const hold = await database.holdWriteUps()
  // While the first note is being written up, those after it wait in memory.
  await node.pullOne()
  await database.untilWaiting(1)
  const leases = leasesOf((await node.pull({ batch: 5 })).partitions)

  const answered = proxy.endBetweenNotes()
  const settling = settleAll(node, leases)
  await answered
  const pulling = node.pull({ batch: 5 })
  expect(await settling).toEqual(leases.map(() => null))
  await hold.letGo()
  expect((await pulling).partitions).toHaveLength(5)
  expect((await node.task('a')).facts.partitions).toMatchObject({ done: 5, leased: before.length + 6 })
  expect(await database.notes()).toBe(0)
  expect(await node.store.audit()).toEqual([])
})

test('a settle is kept when the notes before it could not be written up', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, 6000))
  const before = await database.goAlone(node, 'a')
  const hold = await database.holdPartition(0, before.length)
  const { leaseId, index } = await node.pullOne()
  expect(index).toBe(before.length)
  await database.untilWaiting(1, 'UPDATE baton.partition')
  expect(await node.settle(leaseId)).toBeNull()
  // Enough that the notes after it are written up at once.
  for (let pull = 0; pull < 50; pull += 1)
    expect((await node.pull({ batch: 100 })).partitions).toHaveLength(100)
  expect(await database.notes()).toBe(52)

  await database.untilWaiting(1, 'UPDATE baton.partition')
  const [writing] = await database.waiting('UPDATE baton.partition')
  await database.query(`SELECT pg_cancel_backend(${writing})`)
  // It is over: whoever looks goes on from what is stored.
  const viewing = node.task('a')
  await hold.letGo()
  expect((await viewing).facts.partitions).toMatchObject({ done: 1, leased: before.length + 5000 })
  expect(await database.notes()).toBe(0)
  expect(await node.store.audit()).toEqual([])
})

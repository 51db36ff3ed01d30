import { expect, onTestFinished, test } from 'vitest'
import { CuttingProxy } from '../../../../test/postgres/support/cutting-proxy.ts'
import type { HandedOut } from '../../src/handoff/store.ts'
import { type Driver, leaseOf, nameOf, settlement, some } from './conformance/driver.ts'
import type { OpenNodeOptions, SharedDatabase } from './support/shared-database.ts'
import { sharedDatabases } from './support/shared-databases.ts'

const databases = sharedDatabases()

/** Enough to pull one by one until a node is alone. */
const ALL = 600

const leasesOf = (partitions: readonly HandedOut[]) => partitions.map(({ lease }) => lease?.id ?? '')

async function settleAll(node: Driver, leases: readonly string[]) {
  const settlements = leases.map((id) => ({ lease: leaseOf(id), order: settlement() }))
  return (await node.batch({ settles: [{ instance: null, settlements }] })).settles[0]
}

/** What a node answers that is alone, while nothing of it can be written up. */
async function notedBy(node: Driver, database: SharedDatabase) {
  await node.callBack('a', some(0, ALL))
  const before = await database.goAlone(node, 'a')
  const hold = await database.holdWriteUps()
  const keyed = leasesOf((await node.pull({ batch: 3, key: 'k', instance: 'w' })).partitions)
  const [first = '', second = '', ...open] = leasesOf((await node.pull({ batch: 5 })).partitions)
  const done = [first, second]
  expect(await settleAll(node, done)).toEqual([null, null])
  return { running: [...before, ...keyed, ...open], keyed, done, hold }
}

test('what a node noted and did not write up is there for the next one', async () => {
  const database = await databases.create()
  const proxy = await CuttingProxy.start(databases.server.port)
  onTestFinished(() => proxy.stop())
  const cutOff = await database.open({ port: proxy.port })
  const { running, keyed, done, hold } = await notedBy(cutOff, database)
  expect(await database.notes()).toBe(3)
  proxy.leave()
  await database.endSessions()
  await hold.letGo()

  const next = await database.open()
  expect(await database.notes()).toBe(0)
  const { partitions } = (await next.task('a')).facts
  expect(partitions).toMatchObject({ leased: running.length, done: 2, ready: ALL - 2 - running.length })
  expect((await next.store.instance('w'))?.leases).toBe(3)
  const again = await next.pull({ batch: 3, key: 'k', instance: 'w' })
  expect(again.repeated).toBe(true)
  expect(leasesOf(again.partitions)).toEqual(keyed)
  expect(await settleAll(next, [...running, ...done])).toEqual([...running, ...done].map(() => null))
  expect((await next.task('a')).facts.partitions).toMatchObject({ leased: 0, done: running.length + 2 })
  expect(await next.store.audit()).toEqual([])

  // The one that was cut off finds all that, and goes on beside the other.
  proxy.comeBack()
  const rest = (await Promise.all([cutOff.pullAll(7), next.pullAll(7)])).flat()
  expect(new Set(rest.map(nameOf)).size).toBe(ALL - 2 - running.length)
  expect(rest).toHaveLength(ALL - 2 - running.length)
  expect(await settleAll(cutOff, leasesOf(rest))).toEqual(rest.map(() => null))
  expect((await cutOff.task('a')).facts.partitions).toMatchObject({ done: ALL, leased: 0, ready: 0 })
  expect(await cutOff.store.audit()).toEqual([])
})

test('who looks first after a node was cut off is shown what it had noted', async () => {
  const database = await databases.create()
  const proxy = await CuttingProxy.start(databases.server.port)
  onTestFinished(() => proxy.stop())
  const node = await database.open({ port: proxy.port })
  const { running, hold } = await notedBy(node, database)
  proxy.leave()
  await database.endSessions()
  await hold.letGo()
  proxy.comeBack()
  expect((await node.task('a')).facts.partitions).toMatchObject({ leased: running.length, done: 2 })
  expect(await database.notes()).toBe(0)
})

test('notes that two nodes write up at the same time are written up once', async () => {
  const database = await databases.create()
  const node = await database.open()
  const { running, hold } = await notedBy(node, database)
  await database.endSessions()
  // Both have begun: the one that lost its sessions, and the next one.
  const [viewing, opening] = [node.task('a'), database.open()]
  await database.untilWaiting(2)
  await hold.letGo()
  for (const { facts } of [await viewing, await (await opening).task('a')])
    expect(facts.partitions).toMatchObject({ leased: running.length, done: 2 })
  expect(await database.notes()).toBe(0)
  expect(await node.store.audit()).toEqual([])
})

test('a node whose sessions were ended goes on where it was', async () => {
  const database = await databases.create()
  const node = await database.open()
  const { running, keyed, done, hold } = await notedBy(node, database)
  await database.endSessions()
  await hold.letGo()
  expect(leasesOf((await node.pull({ batch: 3, key: 'k', instance: 'w' })).partitions)).toEqual(keyed)
  expect(await settleAll(node, [...running, ...done])).toEqual([...running, ...done].map(() => null))
  const alone = await database.goAlone(node, 'a')
  expect(await node.pullAll(7)).toHaveLength(ALL - 2 - running.length - alone.length)
  expect(await node.store.audit()).toEqual([])
})

test.each([
  { name: 'without a key', order: {} },
  { name: 'with a key', order: { key: 'k' } },
  { name: 'of a worker with a name', order: { instance: 'w' } },
])('a pull $name is noted', async ({ order }) => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, ALL))
  await database.goAlone(node, 'a')
  const hold = await database.holdWriteUps()
  const { leaseId } = await node.pullOne(order)
  expect(await database.notes()).toBe(1)
  expect(await node.settle(leaseId)).toBeNull()
  expect(await database.notes()).toBe(2)
  await hold.letGo()
})

test('pulls with one key that are under way at the same time are given the same leases', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, ALL))
  await database.goAlone(node, 'a')
  const pull = () => node.pull({ batch: 3, key: 'k' })
  const twins = await Promise.all([pull(), pull()])
  const [first = [], second = []] = twins.map(({ partitions }) => leasesOf(partitions).toSorted())
  expect(second).toEqual(first)
  expect(twins.filter(({ repeated }) => repeated)).toHaveLength(1)
})

interface Setting {
  readonly name: string
  readonly options?: OpenNodeOptions
  /** Who else is there. */
  readonly comes?: (database: SharedDatabase) => Promise<unknown>
}

test.each<Setting>([
  {
    name: 'where each partition is delivered once at most',
    options: { policy: { delivery: 'at-most-once' } },
  },
  { name: 'where it is not wanted', options: { parameters: 'alone=never' } },
  { name: 'while another node is open', comes: (database) => database.open() },
  // It has a session of that name, and no lock.
  { name: 'while a node of an earlier version is open', comes: (database) => database.openOldSession() },
])('nothing is noted $name', async ({ options, comes }) => {
  const database = await databases.create()
  const node = await database.open(options)
  await comes?.(database)
  await node.callBack('a', some(0, ALL))
  for (let round = 0; round < 10; round += 1) {
    const { partitions } = await node.pull({ batch: 2, key: round % 2 === 0 ? null : `key-${round}` })
    expect(partitions).toHaveLength(2)
    for (const { lease } of partitions) if (lease !== null) expect(await node.settle(lease.id)).toBeNull()
  }
  expect(await database.wasTried()).toBe(false)
})

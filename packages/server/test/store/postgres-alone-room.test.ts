import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ForgetfulPooler } from '../../../../test/postgres/support/forgetful-pooler.ts'
import { type Driver, leaseOf, nameOf, settlement, some } from './conformance/driver.ts'
import { sharedDatabases } from './support/shared-databases.ts'

const databases = sharedDatabases()

/** Enough to pull one by one until a node is alone. */
const ALL = 600

/** Pulls and settles by turns until nothing comes, and names what came. */
async function work(node: Driver): Promise<string[]> {
  const names: string[] = []
  while (true) {
    const { partitions } = await node.pull({ batch: 7 })
    if (partitions.length === 0) return names
    names.push(...partitions.map(nameOf))
    const settlements = partitions.map(({ lease }) => ({
      lease: leaseOf(lease?.id ?? ''),
      order: settlement(),
    }))
    const { settles } = await node.batch({ settles: [{ instance: null, settlements }] })
    expect(settles).toEqual([partitions.map(() => null)])
  }
}

/** Both at once: together they are given everything that is left of a task, and nothing twice. */
async function expectEachOnce(nodes: readonly [Driver, Driver], left: number): Promise<void> {
  const names = (await Promise.all(nodes.map(work))).flat()
  expect(new Set(names).size).toBe(left)
  expect(names).toHaveLength(left)
  for (const node of nodes) {
    expect((await node.task('a')).facts.partitions).toMatchObject({ done: left, ready: 0, held: 0 })
    expect(await node.store.audit()).toEqual([])
  }
}

test('a node that is alone makes room for one that comes, and is alone again when it has left', async () => {
  const database = await databases.create()
  const first = await database.open()
  await first.callBack('a', some(0, ALL))
  const leases = await database.goAlone(first, 'a')
  const second = await database.open()
  expect(await database.isHadAlone()).toBe(false)
  await expectEachOnce([first, second], ALL - leases.length)
  expect(await database.isHadAlone()).toBe(false)
  for (const lease of leases) expect(await second.settle(lease)).toBeNull()

  await second.store.close()
  await first.callBack('b', some(0, ALL))
  await database.goAlone(first, 'b')
  expect(await database.isHadAlone()).toBe(true)
})

test('what is noted when another node comes is in the rows when it is there', async () => {
  const database = await databases.create()
  const first = await database.open()
  await first.callBack('a', some(0, ALL))
  const leases = await database.goAlone(first, 'a')
  const hold = await database.holdWriteUps()
  const { leaseId: settled } = await first.pullOne()
  expect(await first.settle(settled)).toBeNull()
  const { leaseId } = await first.pullOne({ key: 'k' })
  const opening = database.open()
  await database.untilWaiting(1)
  await hold.letGo()
  const second = await opening
  expect(await database.notes()).toBe(0)
  expect((await second.pullOne({ key: 'k' })).leaseId).toBe(leaseId)
  expect((await second.task('a')).facts.partitions).toMatchObject({ leased: leases.length + 1, done: 1 })
  expect(await second.settle(leaseId)).toBeNull()
  expect(await second.store.audit()).toEqual([])
})

test('nobody is alone beside a node whose sessions are lent by transaction', async () => {
  const pooler = await ForgetfulPooler.start(databases.server.port)
  onTestFinished(() => pooler.stop())
  const database = await databases.create()
  const own = await database.open()
  await own.callBack('a', some(0, ALL))
  const leases = await database.goAlone(own, 'a')
  const parameters = `alone=whenever-possible&pooling=transaction&listen=127.0.0.1:${databases.server.port}`
  const pooled = await database.open({ port: pooler.port, parameters })
  expect(await database.isHadAlone()).toBe(false)
  const [before] = await database.query('SELECT last_value FROM baton.note_run')
  await expectEachOnce([own, pooled], ALL - leases.length)
  expect(await database.query('SELECT last_value FROM baton.note_run')).toEqual([before])
})

test('who looks is shown what was answered before, and the node stays alone', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, ALL))
  const before = await database.goAlone(node, 'a')
  const [run] = await database.query('SELECT last_value FROM baton.note_run')
  for (let round = 0; round < 5; round += 1) {
    const given = await node.pullOne({ instance: 'w' })
    expect((await node.store.instance('w'))?.leases).toBe(1)
    expect((await node.partition('a', given.level, given.index)).state).toBe('leased')
    expect(await node.settle(given.leaseId)).toBeNull()
    expect((await node.partition('a', given.level, given.index)).state).toBe('done')
    expect((await node.task('a')).facts.partitions).toMatchObject({ done: round + 1, leased: before.length })
    expect((await node.store.instance('w'))?.leases).toBe(0)
    expect(await node.sweep()).toMatchObject({ expired: 0, woken: 0 })
    expect(await node.store.audit()).toEqual([])
  }
  expect(await database.isHadAlone()).toBe(true)
  expect(await database.query('SELECT last_value FROM baton.note_run')).toEqual([run])
})

test('who looks while a pull waits for more to be read is shown what was answered before, too', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, 300))
  const before = await database.goAlone(node, 'a')
  const writeUps = await database.holdWriteUps()
  expect((await node.pull({ batch: 100 })).partitions).toHaveLength(100)
  await database.untilWaiting(1)
  expect((await node.pull({ batch: 100 })).partitions).toHaveLength(100)
  // The pull waits for the first hundred to be written up, then the look does; the second hundred are written up for both.
  const lastNote = await database.holdLastNote()
  const pulling = node.pull({ batch: 290 })
  await setImmediate()
  const looking = node.task('a')
  await setImmediate()
  await writeUps.letGo()
  await database.untilWaiting(1)
  await lastNote.letGo()
  // Perhaps with what the pull was given.
  expect((await looking).facts.partitions.leased).toBeGreaterThanOrEqual(200 + before.length)
  expect((await pulling).partitions).toHaveLength(100 - before.length)
})

test('a hand-off that is stuck does not hold up others, however often being alone is tried', async () => {
  const database = await databases.create()
  const node = await database.open({ parameters: 'alone=when-it-pays' })
  await node.callBack('a', some(0, 200))
  const [stuck, renewed] = [await node.pullOne(), await node.pullOne()]
  const hold = await database.holdPartition(0, 0)
  const settled = node.settle(stuck.leaseId)
  await database.untilWaiting(1)
  for (let times = 0; times < 10; times += 1) {
    await node.pullOne()
    await sleep(10)
  }
  expect(await node.renew(renewed.leaseId)).toMatchObject([{ refused: null }])
  expect((await node.task('a')).facts.partitions.leased).toBe(12)
  await hold.letGo()
  expect(await settled).toBe(null)
})

test('what is noted while others are written up is written up after them', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, 600))
  await database.goAlone(node, 'a')
  const hold = await database.holdWriteUps()
  await node.pullOne()
  await database.untilWaiting(1)
  await node.pullOne()
  // Longer than a note waits otherwise.
  await sleep(200)
  await hold.letGo()
  await expect.poll(() => database.notes(), { timeout: 60_000 }).toBe(0)
})

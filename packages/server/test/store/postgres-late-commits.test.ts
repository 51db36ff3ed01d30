import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CuttingProxy } from '../../../../test/postgres/support/cutting-proxy.ts'
import { leaseOf, nameOf, settlement, some } from './conformance/driver.ts'
import { HOUR } from './conformance/harness.ts'
import type { Hold, OpenNodeOptions, SharedDatabase } from './support/shared-database.ts'
import { sharedDatabases } from './support/shared-databases.ts'

const databases = sharedDatabases()

/** Long enough to ask what became of a commit and to begin anew, and shorter than a lost session is waited for. */
const A_WHILE = 250

async function nodeBehindProxy(options: OpenNodeOptions) {
  const proxy = await CuttingProxy.start(databases.server.port)
  onTestFinished(() => proxy.stop())
  const database = await databases.create()
  const node = await database.open({ ...options, port: proxy.port })
  return { database, proxy, node }
}

const letGoLater = (isHeard: boolean) => async (proxy: CuttingProxy, hold: Hold) => {
  proxy.hangUp({ isHeard })
  await sleep(A_WHILE)
  await hold.letGo()
}

async function letGoWhenEnded(proxy: CuttingProxy, hold: Hold, database: SharedDatabase) {
  const [lost = 0] = await database.waiting()
  proxy.hangUp({ isHeard: false })
  while ((await database.waiting()).includes(lost)) await sleep(5)
  await hold.letGo()
}

/** The server has all of it, and waits for a lock before it comes to the mark; the node knows only that its connection is gone. */
const losses = [
  { name: 'and the server comes to it later', parameters: 'alone=never', lose: letGoLater(true) },
  {
    name: 'and the server comes to it later, behind a pooler',
    parameters: 'alone=never&pooling=transaction',
    lose: letGoLater(true),
  },
  { name: 'and the server hears nothing of it', parameters: 'alone=never', lose: letGoLater(false) },
  { name: 'and the server does not come to it', parameters: 'alone=never', lose: letGoWhenEnded },
]

describe.each(losses)('a connection is lost around a commit, $name', ({ parameters, lose }) => {
  test.each([
    {
      name: 'leases that are given by one statement',
      order: {},
      statement: 'candidate AS MATERIALIZED',
      state: 'leased',
    },
    {
      name: 'leases that are given by a transaction',
      order: { records: 100_000 },
      statement: 'INSERT INTO baton.count_delta',
      state: 'leased',
    },
    {
      name: 'what is delivered once at most',
      order: {},
      policy: { delivery: 'at-most-once' },
      statement: 'INSERT INTO baton.count_delta',
      state: 'done',
    },
  ] as const)('$name: what is out of hand was given to somebody', async (given) => {
    const policy = 'policy' in given ? { policy: given.policy } : {}
    const { database, proxy, node } = await nodeBehindProxy({ parameters, ...policy })
    await node.callBack('a', some(0, 40))
    // No counters are left to be folded, so nobody else waits for their table.
    await node.task('a')
    const hold = await database.holdWriteUps()
    const pulling = node.pull({ batch: 3, ...given.order })
    await database.untilWaiting(1, given.statement)
    await lose(proxy, hold, database)
    expect((await pulling).partitions.map(nameOf)).toEqual(['a-0-0', 'a-0-1', 'a-0-2'])
    expect((await node.task('a')).facts.partitions).toMatchObject({ [given.state]: 3, ready: 37 })
    expect(await node.store.audit()).toEqual([])
  })

  test('a set that shrinks: the leases that are left expire', async () => {
    const { database, proxy, node } = await nodeBehindProxy({ parameters })
    await node.callBack('a', some(0, 40))
    const { partitions } = await node.pull({ batch: 40 })
    const hold = await database.holdDue()
    const settlements = partitions.slice(0, 30).map(({ lease }) => ({
      lease: leaseOf(lease?.id ?? ''),
      order: settlement(),
    }))
    await node.batch({ settles: [{ instance: null, settlements }] })
    await database.untilWaiting(1, 'UPDATE baton.due SET remaining')
    await lose(proxy, hold, database)
    expect((await node.task('a')).facts.partitions).toMatchObject({ leased: 10, done: 30 })
    node.clock.advance(HOUR)
    await node.sweep()
    expect((await node.task('a')).facts.partitions).toMatchObject({ leased: 0, done: 30 })
    expect(await node.store.audit()).toEqual([])
  })
})

test('a connection is lost while something is noted: what is out of hand was given to somebody', async () => {
  const { database, proxy, node } = await nodeBehindProxy({})
  await node.callBack('a', some(0, 400))
  const before = await database.goAlone(node, 'a')
  const hold = await database.holdKeyedPulls()
  const pulling = node.pull({ batch: 3 })
  await database.untilWaiting(1, 'INSERT INTO baton.note')
  proxy.hangUp({ isHeard: true })
  await sleep(A_WHILE)
  await hold.letGo()
  expect((await pulling).partitions).toHaveLength(3)
  expect((await node.task('a')).facts.partitions).toMatchObject({ leased: before.length + 3 })
  expect(await node.store.audit()).toEqual([])
})

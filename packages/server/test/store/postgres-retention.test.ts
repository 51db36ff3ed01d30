import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { leaseOf, settlement, some } from './conformance/driver.ts'
import { DAY } from './conformance/harness.ts'
import { SharedDatabase } from './support/shared-database.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

test('a row that is locked while its task is purged goes the next time, and nobody waits for it', async () => {
  const database = await SharedDatabase.create(server)
  onTestFinished(() => database.closeAll())
  const node = await database.open({ parameters: 'alone=never' })
  await node.callBack('a', [...some(0, 3), ...some(1, 2)])
  const settlements = (await node.pullAll()).map(({ lease }) => ({
    lease: leaseOf(lease?.id ?? ''),
    order: settlement(),
  }))
  await node.batch({ settles: [{ instance: null, settlements }] })
  node.clock.advance(8 * DAY)

  const hold = await database.holdPartition(2)
  await node.tidyAll()
  expect((await node.partitions('a')).map(({ level, index }) => `${level}-${index}`)).toEqual(['0-2'])
  expect((await node.task('a')).facts.purgedAt).toBeNull()

  await hold.letGo()
  await node.tidyAll()
  expect(await node.partitions('a')).toEqual([])
  expect((await node.task('a')).facts).toMatchObject({ purgedAt: node.clock.now(), partitions: { done: 5 } })
  expect(await node.store.audit()).toEqual([])
})

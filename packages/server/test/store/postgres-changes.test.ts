import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { some } from './conformance/driver.ts'
import { SharedDatabase } from './support/shared-database.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

test('what another node is about to commit is told of afterwards', async () => {
  const database = await SharedDatabase.create(server)
  onTestFinished(() => database.closeAll())
  const node = await database.open({ parameters: 'alone=never' })
  const other = await database.open({ parameters: 'alone=never' })
  await other.callBack('a', some(0, 1))
  await other.task('a')
  const changes = (after: string | null) => node.store.changes({ after, limit: 100 })
  const { next: position } = await changes(null)

  // It has written all but the mark of its commit, the place in the order of changes included.
  const hold = await database.holdCommits()
  const pausing = other.control({ verb: 'pause', taskId: 'a' })
  await database.untilWaiting(1, 'UPDATE baton.commit_mark')
  const before = await changes(position)
  expect(before).toMatchObject({ tasks: [], missed: false })
  await hold.letGo()
  await pausing

  const { tasks, missed } = await changes(before.next)
  expect(missed).toBe(false)
  expect(tasks.map(({ facts }) => facts)).toMatchObject([{ taskId: 'a', paused: true }])
})

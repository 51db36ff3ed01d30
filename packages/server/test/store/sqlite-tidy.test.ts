import { expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { DataFolder } from '../../src/store/sqlite/folder.ts'
import { Session } from '../../src/store/sqlite/session.ts'
import { callBackOrder, leaseOf, pullOrder, settlement, some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'

test('what fails again and again keeps neither retention nor the steps of other tasks from being done', async () => {
  const db = new DataFolder(await testFolder()).open()
  const { verbs } = new Session(db, testPolicy, () => true)
  const nothing = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }
  const callBack = (taskId: string, count: number) =>
    verbs.handOff({ ...nothing, callBacks: [callBackOrder(taskId, some(0, count))] }, 0)
  callBack('finished', 1)
  const { pulls } = verbs.handOff({ ...nothing, pulls: [pullOrder()] }, 0)
  const lease = leaseOf(pulls[0]?.partitions[0]?.lease?.id ?? '')
  const settlements = [{ lease, order: settlement() }]
  verbs.handOff({ ...nothing, settles: [{ instance: null, settlements }] }, 0)
  callBack('broken', 1)
  callBack('cancelled', 1200)
  for (const taskId of ['broken', 'cancelled']) verbs.control({ verb: 'cancel', taskId }, 0)
  // As a defect would leave it: a step whose row cannot be read.
  db.prepare(
    `INSERT INTO task_step (task, step, level, only_level, begun_at)
     SELECT id, 'cancel', ?, -1, 0 FROM task WHERE task_id = 'broken'`,
  ).run(2n ** 60n)

  const results = Array.from({ length: 8 }, (_, at) =>
    verbs.tidy({ retentionMillis: 0, forgetInstancesMillis: 0, forgetEndedNodesMillis: 0 }, 1 + at),
  )
  expect(results.filter(({ failure }) => failure instanceof RangeError).length).toBeGreaterThan(1)
  expect(verbs.task('cancelled', 0)?.facts.partitions).toMatchObject({ held: 0, cancelled: 1200 })
  expect(verbs.task('finished', 0)?.facts.purgedAt).not.toBeNull()
  db.close()
})

import { describe, expect, test } from 'vitest'
import type { AuditQuery } from '../../../src/handoff/audit.ts'
import type { Driver } from './driver.ts'
import { one, some } from './driver.ts'
import { DAY, type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { MANY } from './lanes.ts'

const by = (name: string) => ({ name, address: '10.0.0.7', body: { asked: name } })

const audited = async ({ store }: Driver, changes: Partial<AuditQuery> = {}) => {
  const query = { taskId: null, name: null, before: Number.MAX_SAFE_INTEGER, limit: 100, ...changes }
  const { records, next } = await store.audited(query)
  return {
    actions: records.map(({ name, action, changed }) => `${name} ${action} ${changed}`),
    next,
    records,
  }
}

export function auditTopic(harness: StoreHarness): void {
  describe('the audit', () => {
    const open = storesOf(harness)

    test('has what was changed, by whom and when, and outlives a restart', async () => {
      const driver = await open()
      await driver.callBack('a', some(0, 2))
      const pausedAt = driver.clock.now()
      await driver.control({ verb: 'pause', taskId: 'a', by: by('ops') })
      driver.clock.advance(1000)
      await driver.control({ verb: 'pause', taskId: 'a', by: by('twice') })
      await driver.control({
        verb: 'settings',
        taskId: 'new',
        settings: { maxAttempts: 2 },
        by: by('before'),
      })
      await driver.reopen()
      const { records } = await audited(driver)
      expect(records).toMatchObject([
        { action: 'settings', taskId: 'new', name: 'before', at: pausedAt + 1000 },
        { action: 'pause', taskId: 'a', ...{ name: 'ops', address: '10.0.0.7' }, request: { asked: 'ops' } },
      ])
      expect(records[1]?.at).toBe(pausedAt)
      const { facts } = await driver.task('a')
      expect(facts.stamps).toEqual({ paused: [pausedAt, 'ops'] })
      await driver.control({ verb: 'resume', taskId: 'a', by: by('ops') })
      expect((await driver.task('a')).facts.stamps).toEqual({})
    })

    test('has one record of a request with several steps, with all that it changes', async () => {
      const driver = await open({ ...testPolicy, maxAttempts: 1 })
      await driver.callBack('a', some(0, MANY))
      await driver.pull({ batch: MANY })
      while ((await driver.pass(testPolicy.leaseMillis + 1)).more);
      const request = { verb: 'retry', taskId: 'a', level: null, partitions: null, done: false } as const
      const retried = await driver.control({ ...request, by: by('ops') })
      expect(retried).toMatchObject({ kind: 'applied', changed: MANY })
      expect((await audited(driver)).actions).toEqual([`ops retry ${MANY}`])
    })

    test('is paged, and forgotten after its retention', async () => {
      const driver = await open()
      await driver.callBack('a', some(0, 1))
      await driver.control({ verb: 'pause', taskId: 'a', by: by('one') })
      driver.clock.advance(2 * DAY)
      await driver.control({ verb: 'resume', taskId: 'a', by: by('two') })
      const first = await audited(driver, { limit: 1 })
      expect(first.actions).toEqual(['two resume 1'])
      const rest = await audited(driver, { limit: 1, before: first.next ?? 0 })
      expect([rest.actions, rest.next]).toEqual([['one pause 1'], null])
      driver.clock.advance(89 * DAY)
      await driver.maintainAll()
      expect((await audited(driver)).actions).toEqual(['two resume 1'])
    })
  })

  describe('the feed of a task', () => {
    const open = storesOf(harness)

    const events = async ({ store }: Driver, taskId = 'a') =>
      (await store.feed(taskId))?.entries.map(({ event, level }) =>
        level === null ? event : `${event} ${level}`,
      )

    test('says when its levels and the task were done, until they are open again', async () => {
      const driver = await open()
      await driver.callBack('a', [one(0, 0), one(3, 0)])
      expect(await driver.store.feed('b')).toBeNull()
      expect(await events(driver)).toEqual(['call-back'])
      await driver.settle((await driver.pullOne()).leaseId)
      expect(await events(driver)).toEqual(['level-done 0', 'call-back'])
      driver.clock.advance(1000)
      await driver.settle((await driver.pullOne()).leaseId)
      expect(await events(driver)).toEqual(['done', 'level-done 3', 'level-done 0', 'call-back'])
      driver.clock.advance(1000)
      await driver.callBack('a', [one(0, 1)])
      expect(await events(driver)).toEqual(['level-done 3', 'call-back'])
    })
  })
}

import { describe, expect, test } from 'vitest'
import type { AuditQuery, AuditRecord } from '../../../src/handoff/audit.ts'
import { NOW, write } from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

const record = (id: number, changes: Partial<AuditRecord> = {}): AuditRecord => ({
  id,
  at: NOW + id,
  changed: 1,
  action: 'pause',
  taskId: null,
  target: null,
  name: null,
  address: null,
  request: null,
  ...changes,
})

const query = (changes: Partial<AuditQuery> = {}): AuditQuery => ({
  taskId: null,
  name: null,
  before: Number.MAX_SAFE_INTEGER,
  limit: 100,
  ...changes,
})

export function auditTopic(harness: DiskHarness): void {
  describe('the audit', () => {
    const create = disksOf(harness)

    test('keeps records as they are, also when they are flushed twice', async () => {
      const { disk } = await create()
      const full = record(7, {
        taskId: 'spätlese/"3"',
        target: 'wörker',
        name: 'on "call"',
        address: '2001:db8::7',
        request: { partitions: ['a-0-1'], note: 'a \\ b' },
        changed: Number.MAX_SAFE_INTEGER,
      })
      for (const _ of [1, 2]) await write(disk, { audit: [full, record(8)] })
      expect(await disk.audited(query())).toEqual([record(8), full])
    })

    test('is found by task and by name, the newest first', async () => {
      const { disk } = await create()
      const audit = [
        record(1, { taskId: 'a', name: 'ops' }),
        record(2, { taskId: 'b', name: 'ops' }),
        record(3, { taskId: 'a', name: 'compute' }),
        record(4, { taskId: 'a', name: 'ops' }),
        record(5),
      ]
      await write(disk, { audit })
      const found = async (changes: Partial<AuditQuery>) =>
        (await disk.audited(query(changes))).map(({ id }) => id)
      expect(await found({})).toEqual([5, 4, 3, 2, 1])
      expect(await found({ before: 4, limit: 2 })).toEqual([3, 2])
      expect(await found({ taskId: 'a' })).toEqual([4, 3, 1])
      expect(await found({ taskId: 'a', before: 4, limit: 1 })).toEqual([3])
      expect(await found({ name: 'ops' })).toEqual([4, 2, 1])
      expect(await found({ taskId: 'a', name: 'ops' })).toEqual([4, 1])
      expect(await found({ taskId: 'none' })).toEqual([])
    })

    test('forgets what is too old or too much, from the oldest on, a bounded number at a time', async () => {
      const { disk } = await create()
      await write(disk, { audit: [1, 2, 3, 4, 5, 6].map((id) => record(id)) })
      const left = async () => (await disk.audited(query())).map(({ id }) => id)
      expect(await disk.forgetAudit({ before: NOW, most: 10, limit: 10 })).toBe(0)
      expect(await disk.forgetAudit({ before: NOW + 4, most: 10, limit: 2 })).toBe(2)
      expect(await left()).toEqual([6, 5, 4, 3])
      expect(await disk.forgetAudit({ before: NOW + 4, most: 10, limit: 2 })).toBe(1)
      expect(await disk.forgetAudit({ before: NOW, most: 2, limit: 10 })).toBe(1)
      expect(await left()).toEqual([6, 5])
      expect(await disk.forgetAudit({ before: NOW, most: 2, limit: 10 })).toBe(0)
    })
  })
}

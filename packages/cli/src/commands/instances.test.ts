import { stripVTControlCharacters } from 'node:util'
import type { InstanceStatus } from '@baton/client'
import { expect, test } from 'vitest'
import { instanceTable } from './instances.ts'

const totals = {
  pulls: 0,
  partitions: 0,
  records: 0,
  done: 0,
  failed: 0,
  released: 0,
  expired: 0,
  revoked: 0,
  callBacks: 0,
  calledBack: 0,
}

const instance = (instanceId: string): InstanceStatus => ({
  instanceId,
  role: 'worker',
  status: 'up',
  leases: 0,
  totals,
  firstSeenAt: '2026-03-01T11:00:00.000Z',
  lastSeenAt: '2026-03-01T12:00:00.000Z',
})

test('a long name does not push the numbers out of any row', () => {
  const long = `${'x'.repeat(254)}-7`
  const lines = stripVTControlCharacters(instanceTable([instance(long), instance('北-1')], 90)).split('\n')
  expect(lines[0]).toMatch(/^INSTANCE +ROLE +STATUS +LEASES +DONE +FAILED +RECORDS +SEEN$/)
  expect(lines[1]).toMatch(/^x+…x+-7 {2}worker {2}up .* ago$/)
  expect(lines[2]).toMatch(/^北-1 +worker {2}up .* ago$/)
  expect(lines[1]?.length).toBe(90)
  // A wide character takes two columns.
  expect(lines[2]?.length).toBe(89)
  expect(instanceTable([instance(long)], Number.POSITIVE_INFINITY)).toContain(long)
})

import { expect, test } from 'vitest'
import { type EndedAttemptOf, EndedAttempts } from '../../../src/handoff/engine/state/ended-attempts.ts'

const ended = (holder: string, partition: number, changed: Partial<EndedAttemptOf> = {}): EndedAttemptOf => ({
  taskId: 'orders',
  level: 0,
  index: partition,
  spelling: null,
  computeTableName: 'result_1',
  recordCount: 10,
  partition,
  holder,
  attempt: 1,
  startedAt: 1000,
  endedAt: 2000,
  outcome: 'done',
  reason: null,
  records: null,
  isLate: false,
  ...changed,
})

const partitionsOf = (attempts: EndedAttempts, holder: string) =>
  attempts.of(holder).map(({ index }) => index)

test('the last fifty attempts of an instance are kept, the last one first', () => {
  const attempts = new EndedAttempts()
  for (let partition = 0; partition < 230; partition += 1) attempts.add(ended('worker', partition))
  expect(partitionsOf(attempts, 'worker')).toEqual(Array.from({ length: 50 }, (_, back) => 229 - back))
  expect(attempts.of('other')).toEqual([])
})

test('a late settlement replaces the expiry of its attempt', () => {
  const attempts = new EndedAttempts()
  attempts.add(ended('worker', 1, { outcome: 'expired' }))
  attempts.add(ended('worker', 2))
  attempts.add(ended('worker', 1, { outcome: 'failed', isLate: true }))
  expect(attempts.of('worker').map(({ index, outcome }) => [index, outcome])).toEqual([
    [1, 'failed'],
    [2, 'done'],
  ])
})

test('instances that ended no attempt for long are dropped first, so that so many are kept at most', () => {
  const attempts = new EndedAttempts(100)
  const names = Array.from({ length: 200 }, (_, number) => `worker-${number}`)
  attempts.add(ended('steady', 0))
  for (const [number, name] of names.entries()) {
    attempts.add(ended(name, number))
    if (number % 40 === 0) attempts.add(ended('steady', number))
  }
  const kept = names.filter((name) => attempts.of(name).length > 0)
  expect(kept).toEqual(names.slice(-kept.length))
  expect(kept.length).toBeGreaterThan(40)
  expect(kept.length + attempts.of('steady').length).toBeLessThanOrEqual(100)
  expect(partitionsOf(attempts, 'steady')).toEqual([160, 120, 80, 40, 0, 0])
})

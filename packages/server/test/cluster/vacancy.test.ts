import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Vacancy } from '../../src/cluster/vacancy.ts'
import { LeaderUnavailable, StoreUnavailable } from '../../src/handoff/store.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('waiting requests fail without a leader; if the store is the cause, with an outage', async () => {
  const vacancy = new Vacancy<string>('this node has not joined')
  vacancy.begin('no node has taken over yet')
  const waiting = vacancy.filled().catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(3000)
  expect(await waiting).toBeInstanceOf(LeaderUnavailable)
  expect(await waiting).toMatchObject({ message: 'there is no leader: no node has taken over yet' })

  vacancy.empty('PostgreSQL accepts no writes', true)
  const error = await vacancy.filled().catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(StoreUnavailable)
  expect(error).not.toBeInstanceOf(LeaderUnavailable)
  expect(error).toMatchObject({ message: 'there is no leader: PostgreSQL accepts no writes' })
})

test('waiting requests get the next leader', async () => {
  const vacancy = new Vacancy<string>('none')
  vacancy.fill('first')
  vacancy.empty('the leader hung up')
  const waiting = vacancy.filled()
  vacancy.fill('second')
  expect(await waiting).toBe('second')
})

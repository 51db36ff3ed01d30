import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { AwaitedLeader } from '../../src/cluster/awaited-leader.ts'
import { LeaderUnavailable, StoreUnavailable } from '../../src/handoff/store.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('waiting requests fail without a leader; if the store is the cause, with an outage', async () => {
  const leader = new AwaitedLeader<string>('this node has not joined')
  leader.begin('no node has taken over yet')
  const waiting = leader.whenFound().catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(3000)
  expect(await waiting).toBeInstanceOf(LeaderUnavailable)
  expect(await waiting).toMatchObject({ message: 'there is no leader: no node has taken over yet' })

  leader.missing('PostgreSQL accepts no writes', true)
  const error = await leader.whenFound().catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(StoreUnavailable)
  expect(error).not.toBeInstanceOf(LeaderUnavailable)
  expect(error).toMatchObject({ message: 'there is no leader: PostgreSQL accepts no writes' })
})

test('waiting requests get the next leader', async () => {
  const leader = new AwaitedLeader<string>('none')
  leader.found('first')
  leader.missing('the leader hung up')
  const waiting = leader.whenFound()
  leader.found('second')
  expect(await waiting).toBe('second')
})

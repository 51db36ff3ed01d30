import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withTimeout } from '../../src/handoff/clock.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = new Promise<string>(() => {})
const late = () => 'late'

test('work that ends in time returns its result, and no timer remains', async () => {
  expect(await withTimeout(Promise.resolve('done'), 1000, late)).toBe('done')
  await expect(withTimeout(Promise.reject(new Error('failed')), 1000, late)).rejects.toThrow('failed')
  expect(vi.getTimerCount()).toBe(0)
})

test('work that takes too long is not waited for', async () => {
  const answer = withTimeout(never, 1000, late)
  await vi.advanceTimersByTimeAsync(999)
  expect(vi.getTimerCount()).toBe(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(await answer).toBe('late')
})

test('a timeout may be an error', async () => {
  const answer = withTimeout(never, 1000, () => {
    throw new Error('too late')
  })
  const refused = expect(answer).rejects.toThrow('too late')
  await vi.advanceTimersByTimeAsync(1000)
  await refused
})

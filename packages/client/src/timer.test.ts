import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { requestSignal } from './transport.ts'
import { Deadline } from './worker.ts'

const DAY_SECONDS = 86_400

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

test.each([1e7, Number.POSITIVE_INFINITY])(
  'a request that may take %d s does not time out at once',
  (seconds) => {
    const { signal, timedOut, release } = requestSignal(undefined, seconds * 1000)
    vi.advanceTimersByTime(DAY_SECONDS * 1000)
    expect(timedOut()).toBe(false)
    expect(signal.aborted).toBe(false)
    release()
  },
)

test('a request that may take a day times out after a day', () => {
  const { signal, timedOut } = requestSignal(undefined, DAY_SECONDS * 1000)
  vi.advanceTimersByTime(DAY_SECONDS * 1000 - 1)
  expect(timedOut()).toBe(false)
  vi.advanceTimersByTime(1)
  expect(timedOut()).toBe(true)
  expect(signal.aborted).toBe(true)
})

test('a deadline in months is not reached at once, and can be brought forward', async () => {
  const reached = vi.fn()
  const deadline = new Deadline()
  void deadline.reached.then(reached)
  deadline.within(1e7)
  await vi.advanceTimersByTimeAsync(DAY_SECONDS * 1000)
  expect(reached).not.toHaveBeenCalled()
  deadline.within(2)
  await vi.advanceTimersByTimeAsync(2000)
  expect(reached).toHaveBeenCalledOnce()
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ProblemError, UnreachableError } from './errors.ts'
import { backOffMillis, persist } from './retry.ts'

test('pauses grow, are randomized, and are never shorter than Retry-After', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.nat({ max: 100 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (failures, retryAfter, random) => {
        const millis = backOffMillis(failures, retryAfter, () => random)
        expect(millis).toBeGreaterThanOrEqual(Math.min(retryAfter, 60) * 1000)
        expect(millis).toBeLessThanOrEqual(75_000)
        if (retryAfter === 0) {
          const full = Math.min(200 * 2 ** Math.min(failures - 1, 20), 15_000)
          expect(millis).toBeGreaterThanOrEqual(full / 2)
          expect(millis).toBeLessThanOrEqual(full)
        }
      },
    ),
  )
})

test('permanent errors are not retried', async () => {
  let tries = 0
  const hopeless = new ProblemError({
    type: 'urn:baton:problem:token-refused',
    title: 'Token refused',
    status: 403,
    detail: 'no',
    code: 'token_refused',
    retryable: false,
  })
  const attempt = async () => {
    tries += 1
    throw hopeless
  }
  await expect(persist(attempt, { forMillis: Number.POSITIVE_INFINITY })).rejects.toBe(hopeless)
  expect(tries).toBe(1)
})

test('without time for retries there is one attempt', async () => {
  let tries = 0
  const attempt = async () => {
    tries += 1
    throw new UnreachableError('away')
  }
  await expect(persist(attempt, { forMillis: 0 })).rejects.toThrow('away')
  expect(tries).toBe(1)
})

test('an abort ends the pause between two attempts', async () => {
  const controller = new AbortController()
  const persisting = persist(() => Promise.reject(new UnreachableError('away')), {
    forMillis: Number.POSITIVE_INFINITY,
    signal: controller.signal,
    onFailure: () => controller.abort(new Error('enough')),
  })
  await expect(persisting).rejects.toThrow('enough')
})

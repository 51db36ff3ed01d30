import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { checkRenewal, checkSettlements, settleAnswerSchema } from '../src/index.ts'

describe('an array of settlements', () => {
  test('is accepted unchanged, with all optional fields', () => {
    const settlements = [
      { leaseId: 'a', outcome: 'done', records: 0 },
      { leaseId: 'b', outcome: 'failed', reason: 'locked', retryAfterSeconds: 0.5, final: false },
      { leaseId: 'c', outcome: 'released' },
    ]
    expect(checkSettlements(settlements)).toEqual({ ok: true, settlements })
  })

  test('may carry unknown fields, and a very long reason', () => {
    const settlements = [{ leaseId: 'a', outcome: 'failed', reason: 'r'.repeat(65_536), worker: 'w' }]
    expect(checkSettlements(settlements).ok).toBe(true)
  })

  test('is refused with a pointer to every violation', () => {
    const body = [
      { leaseId: 'a', outcome: 'done' },
      { outcome: 'finished', reason: 'a\0', retryAfterSeconds: 86_401, final: 'yes', records: -1 },
      null,
      { leaseId: 7, outcome: 'done', retryAfterSeconds: '1', reason: '\udc00' },
      { leaseId: 'x'.repeat(257), outcome: 'released', reason: 'r'.repeat(65_537) },
    ]
    expect(checkSettlements(body)).toEqual({
      ok: false,
      total: 12,
      violations: [
        {
          pointer: '/1/outcome',
          detail: 'outcome must be one of "done", "failed", "released", got the string "finished"',
        },
        {
          pointer: '/1/reason',
          detail: 'reason must not contain NUL characters or lone surrogates, got the string "a\\u0000"',
        },
        {
          pointer: '/1/retryAfterSeconds',
          detail: 'retryAfterSeconds must be at most 86400, got the number 86401',
        },
        { pointer: '/1/final', detail: 'final must be true or false, got the string "yes"' },
        { pointer: '/1/records', detail: 'records must be a non-negative integer, got the number -1' },
        { pointer: '/1/leaseId', detail: 'leaseId is missing' },
        { pointer: '/2', detail: 'each element must be an object, got null' },
        { pointer: '/3/leaseId', detail: 'leaseId must be a string, got the number 7' },
        {
          pointer: '/3/retryAfterSeconds',
          detail: 'retryAfterSeconds must be a non-negative number, got the string "1"',
        },
        {
          pointer: '/3/reason',
          detail: 'reason must not contain NUL characters or lone surrogates, got the string "\\udc00"',
        },
        {
          pointer: '/4/leaseId',
          detail: `leaseId must have at most 256 characters, got the string "${'x'.repeat(40)}…"`,
        },
        {
          pointer: '/4/reason',
          detail: `reason must have at most 65536 characters, got the string "${'r'.repeat(40)}…"`,
        },
      ],
    })
  })

  test.each([
    [{}, 'the body must be an array of settlements, got an object'],
    [[], 'the array must not be empty; it must contain settlements'],
    [
      Array.from({ length: 10_001 }, () => ({ leaseId: 'a', outcome: 'done' })),
      'the array must have at most 10000 settlements, got 10001; send several requests',
    ],
  ])('is refused as a whole when it is none, empty or too long', (body, detail) => {
    expect(checkSettlements(body)).toEqual({ ok: false, total: 1, violations: [{ pointer: '', detail }] })
  })
})

describe('an array of leases to renew', () => {
  test('is a list of lease ids, or of objects', () => {
    const full = { leaseId: 'b', progress: { records: 5, note: 'sorting' }, checkpoint: null }
    expect(checkRenewal(['a', full])).toEqual({ ok: true, renewals: [{ leaseId: 'a' }, full] })
  })

  test('is refused with a pointer to every violation', () => {
    expect(checkRenewal(['a', 5, '', { leaseId: 5 }, 'b\0'])).toEqual({
      ok: false,
      total: 4,
      violations: [
        { pointer: '/1', detail: 'each element must be a string, got the number 5' },
        { pointer: '/2', detail: 'each element must not be empty, got an empty string' },
        { pointer: '/3/leaseId', detail: 'leaseId must be a string, got the number 5' },
        {
          pointer: '/4',
          detail:
            'each element must not contain NUL characters or lone surrogates, got the string "b\\u0000"',
        },
      ],
    })
  })

  test.each([null, [], 'a', Array.from({ length: 10_001 }, () => 'a')])(
    'is never empty or endless',
    (body) => {
      expect(checkRenewal(body)).toMatchObject({ ok: false, total: 1, violations: [{ pointer: '' }] })
    },
  )
})

describe('the answer to settlements', () => {
  test('always has partitions, also if none were requested', () => {
    const answer = { settled: ['a'], refused: [] }
    expect(Value.Check(settleAnswerSchema(), { ...answer, partitions: [] })).toBe(true)
    expect(Value.Check(settleAnswerSchema(), answer)).toBe(false)
  })
})

import { describe, expect, test } from 'vitest'
import {
  checkCallBack,
  type ErrorCode,
  type ErrorCodeEntry,
  errorCodes,
  listedViolations,
  problem,
  problemType,
  refusalCodes,
} from '../src/index.ts'

const entries = Object.entries(errorCodes) as [ErrorCode, ErrorCodeEntry][]

describe('the registry of error codes', () => {
  test.each(entries)('explains %s and what to do about it', (code, entry) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
    expect(entry.title).not.toMatch(/\.$/)
    expect(entry.meaning).toMatch(/\.$/)
    expect(entry.remedy).toMatch(/\.$/)
  })

  test('marks server errors as retryable, and client errors not, except for timeouts and rate limits', () => {
    for (const [code, { status, retryable }] of entries) {
      const passes = status !== null && (status >= 500 || status === 408 || status === 429)
      expect([code, retryable]).toEqual([code, passes])
    }
  })

  test('has every reason for refusing a lease', () => {
    for (const code of refusalCodes) expect(errorCodes).toHaveProperty(code)
    const inListsOnly = entries.filter(([, { status }]) => status === null).map(([code]) => code)
    expect(inListsOnly).toEqual([
      'lease_unknown',
      'lease_lost',
      'limit_reached',
      'checkpoint_too_long',
      'lease_settled',
    ])
  })
})

describe('a problem document', () => {
  test('is built from a code and a detail', () => {
    expect(problem('task_unknown', 'no task "orders"')).toEqual({
      type: 'urn:baton:problem:task-unknown',
      title: 'Unknown task',
      status: 404,
      detail: 'no task "orders"',
      code: 'task_unknown',
      retryable: false,
    })
  })

  test('names its type with hyphens', () => {
    expect(problemType('record_total_too_large')).toBe('urn:baton:problem:record-total-too-large')
  })

  test('lists violations, and counts those that it leaves out', () => {
    const check = checkCallBack(Array.from({ length: 130 }, () => 0))
    if (check.ok) throw new Error('was accepted')
    const { errors, errorsOmitted } = problem('contract_violation', 'x', listedViolations(check))
    expect(errors).toHaveLength(100)
    expect(errorsOmitted).toBe(30)
    expect(listedViolations({ ok: false, violations: [], total: 0 })).toEqual({ errors: [] })
  })
})

import { describe, expect, test } from 'vitest'
import { StoreRefused, StoreUnavailable } from '../../src/handoff/store.ts'
import type { Connection } from '../../src/store/postgres/session/connection.ts'
import { asRefused, asUnavailable, isSessionOver } from '../../src/store/postgres/session/failures.ts'
import { refuseLentSessions } from '../../src/store/postgres/session/lent-sessions.ts'

/** The first connection meets these sessions one after the other, and so does the second. */
function connectorTo(...meetings: [readonly number[], readonly number[]]) {
  let closed = 0
  const connections = meetings.map((sessions) => {
    let asked = 0
    return {
      run: async () => [{ session: sessions[Math.min(asked++, sessions.length - 1)] }],
      close: async () => {
        closed += 1
      },
    } as unknown as Connection
  })
  return {
    connect: async () => connections.shift() as Connection,
    closed: () => closed,
  }
}

describe('a pooler that lends sessions by transaction, and the URL does not say so', () => {
  test.each([
    ['an idle one lends the same session to both', [7], [7]],
    ['one that lends by turns', [7, 8, 7, 8], [7, 8, 7, 8]],
    ['a busy one', [7, 7, 7, 12], [8]],
  ])('is refused: %s', async (_, first, second) => {
    const connector = connectorTo(first, second)
    const refused = refuseLentSessions(connector)
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow('add pooling=transaction to the database URL, and listen=host:port')
    expect(connector.closed()).toBe(2)
  })

  test('is told from PostgreSQL and from a pooler that lends by session: each has one of its own', async () => {
    const connector = connectorTo([7], [8])
    await refuseLentSessions(connector)
    expect(connector.closed()).toBe(2)
  })

  test.each(['26000', '42P05'])('that comes later is not taken for a defect (%s)', (code) => {
    const unavailable = asUnavailable(Object.assign(new Error('prepared statement'), { code }))
    expect(unavailable).toBeInstanceOf(StoreUnavailable)
    expect(unavailable?.message).toContain('pooling=transaction')
  })
})

test('what PgBouncer says when it ends a session is not taken for a defect', () => {
  const ended = Object.assign(new Error('query_wait_timeout'), { code: '08P01', severity: 'FATAL' })
  expect(isSessionOver(ended)).toBe(true)
  expect(asUnavailable(ended)).toMatchObject({ code: 'store_unavailable' })
  expect(asRefused(ended, 'pooler:6432')).toMatchObject({
    message: 'the pooler says: query_wait_timeout; check the database URL, and PostgreSQL at pooler:6432',
  })
})

test('a statement that was sent wrongly is not taken for the end of a session', () => {
  const wrong = Object.assign(new Error('bind message supplies 1 parameters'), {
    code: '08P01',
    severity: 'ERROR',
  })
  expect(isSessionOver(wrong)).toBe(false)
  expect(asUnavailable(wrong)).toBeUndefined()
})

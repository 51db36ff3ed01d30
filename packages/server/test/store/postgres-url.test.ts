import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { StoreRefused } from '../../src/handoff/store.ts'
import { parseDatabaseUrl } from '../../src/store/postgres/session/database-url.ts'
import { whereabouts } from '../../src/store/postgres/session/whereabouts.ts'

describe('the URL of a database', () => {
  test('with one host is left as it is', () => {
    const url = 'postgres://baton:se%40cret@db.internal:5433/baton?sslmode=require'
    expect(parseDatabaseUrl(url)).toEqual({
      where: 'db.internal:5433',
      hosts: [url],
      listenHosts: [url],
      pooledByTransaction: false,
      alone: 'when-it-pays',
    })
  })

  test('with several hosts becomes one for each, in their order', () => {
    const { hosts } = parseDatabaseUrl(
      'postgresql://b@one:5432,two:5433/baton?target_session_attrs=read-write',
    )
    expect(hosts).toEqual(['postgresql://b@one:5432/baton', 'postgresql://b@two:5433/baton'])
  })

  test('can name a pooler and where to listen behind it', () => {
    expect(parseDatabaseUrl('postgres://pooler:6432/baton?pooling=transaction&listen=db:5432&a=b')).toEqual({
      where: 'pooler:6432',
      hosts: ['postgres://pooler:6432/baton?a=b'],
      listenHosts: ['postgres://db:5432/baton?a=b'],
      pooledByTransaction: true,
      alone: 'when-it-pays',
    })
  })

  test('of a pooler that lends sessions by transaction gives nowhere to listen by itself', () => {
    expect(parseDatabaseUrl('postgres://pooler:6432/baton?pooling=transaction').listenHosts).toEqual([])
  })

  test('says whether a node that has the database to itself hands out from memory', () => {
    const { alone, hosts } = parseDatabaseUrl('postgres://db/baton?alone=never')
    expect({ alone, hosts }).toEqual({ alone: 'never', hosts: ['postgres://db/baton'] })
  })

  test('of a socket keeps its parameters', () => {
    expect(parseDatabaseUrl('postgres:///baton?host=%2Frun').hosts).toEqual(['postgres:///baton?host=%2Frun'])
  })

  test.each([
    'mysql://db/baton',
    'db.internal',
    'postgres://db/baton?pooling=statement',
    'postgres://db/baton?alone=maybe',
  ])('%s is refused', (url) => {
    expect(() => parseDatabaseUrl(url)).toThrow(StoreRefused)
  })
})

describe('where a database is, for people', () => {
  test.each([
    ['postgres://baton:se%40cret@db.internal:5433/baton?sslmode=require', 'db.internal:5433/baton'],
    ['postgres://baton:secret@one,two:5433/orders?alone=never', 'one:5432/orders, two:5433/orders'],
    ['postgres://baton:secret@/orders?host=%2Frun', '/run:5432/orders'],
    ['postgres://baton:secret@db', 'db:5432/baton'],
  ])('%s', (url, where) => {
    vi.stubEnv('PGPORT', undefined)
    vi.stubEnv('PGDATABASE', undefined)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(whereabouts(url)).toBe(where)
  })
})

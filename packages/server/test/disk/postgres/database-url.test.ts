import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { describeServer, parseDatabaseUrl } from '../../../src/disk/postgres/session/connector.ts'
import { StoreRefused } from '../../../src/handoff/store.ts'

describe('the URL of a database', () => {
  test('with one host is unchanged', () => {
    const url = 'postgres://baton:se%40cret@db.internal:5433/baton?sslmode=verify-full'
    expect(parseDatabaseUrl(url)).toEqual({
      where: 'db.internal:5433',
      hosts: [url],
    })
  })

  test('with several hosts becomes one for each, in their order', () => {
    const { hosts } = parseDatabaseUrl(
      'postgresql://b@one:5432,two:5433/baton?target_session_attrs=read-write',
    )
    expect(hosts).toEqual(['postgresql://b@one:5432/baton', 'postgresql://b@two:5433/baton'])
  })

  test('of a socket keeps its parameters', () => {
    expect(parseDatabaseUrl('postgres:///baton?host=%2Frun').hosts).toEqual(['postgres:///baton?host=%2Frun'])
  })

  test.each(['mysql://db/baton', 'db.internal', 'postgres://db:port/baton'])('%s is refused', (url) => {
    expect(() => parseDatabaseUrl(url)).toThrow(StoreRefused)
  })
})

describe('sslmode in the URL of a database', () => {
  const given = (query: string) => parseDatabaseUrl(`postgres://db/baton?${query}`).hosts[0]?.split('?')[1]

  test.each(['prefer', 'require', 'verify-ca'])('%s means verify-full', (mode) => {
    expect(given(`sslmode=${mode}&sslrootcert=ca.crt`)).toBe('sslmode=verify-full&sslrootcert=ca.crt')
  })

  test.each([
    'sslmode=disable',
    'sslmode=no-verify',
    'sslmode=verify-full',
    'uselibpqcompat=true&sslmode=require',
    'uselibpqcompat=true&sslmode=verify-ca&sslrootcert=ca.crt',
  ])('%s is unchanged', (query) => {
    expect(given(query)).toBe(query)
  })

  test.each(['allow', 'bogus', ''])('%j is refused with the list of known modes', (mode) => {
    expect(toldOf(`postgres://db/baton?sslmode=${mode}`)).toBe(
      `sslmode=${mode} in the database URL is unknown: use sslmode=verify-full, sslmode=no-verify or sslmode=disable; prefer, require, verify-ca mean verify-full`,
    )
  })

  test('verify-ca as libpq understands it needs a CA', () => {
    expect(toldOf('postgres://db/baton?uselibpqcompat=true&sslmode=verify-ca')).toContain('sslrootcert=FILE')
  })
})

describe('a password that is not percent-encoded', () => {
  test.each([
    'postgres://u:hunter2/xyz@host/db',
    'postgres://u:4711/xyz@host/db',
    'postgres://u:pa?ss@host/db',
    'postgres://u:47?11@host/db',
    'postgres://u:47?s=11@host/db',
    'postgres://u:47/?pooling=11@host/db',
    'postgres://u:p@ss@host:5432/db',
    'postgres://u:p@ss/w@host:5432/db',
    'postgres://u:pa#ss@host/db',
    'postgres://u:47#11@host/db',
    'postgres://u:100%@host/db',
    'postgres://u:%ff@host/db',
  ])('%s is refused without printing it', (url) => {
    expect(toldOf(url)).toBe(
      'the database URL is invalid; its form is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with several hosts separated by commas. In user and password, percent-encode @ as %40, / as %2F, ? as %3F, # as %23, : as %3A and % as %25; elsewhere, percent-encode @',
    )
  })

  test.each([
    ['postgres://u:p%40ss%2Fw%3Frd%23%25%26%3A%2B@host/db', 'host'],
    ['postgres://u:p&:+ss@host/db', 'host'],
    ['postgres://u@[::1]:5432/db', '[::1]:5432'],
    ['postgres://u@one:1, two:2/db', 'one:1, two:2'],
    ['postgres://u@%2Frun%2Fpostgresql/db', '%2Frun%2Fpostgresql'],
  ])('is not found in %s', (url, where) => {
    expect(parseDatabaseUrl(url).where).toBe(where)
  })
})

function toldOf(url: string): string {
  try {
    return `nothing: it is taken for ${JSON.stringify(parseDatabaseUrl(url))}`
  } catch (error) {
    expect(error).toBeInstanceOf(StoreRefused)
    return (error as Error).message
  }
}

describe('the printed location of a database', () => {
  test.each([
    ['postgres://baton:se%40cret@db.internal:5433/baton?sslmode=require', 'db.internal:5433/baton'],
    ['postgres://baton:secret@one,two:5433/orders?sslmode=disable', 'one:5432/orders, two:5433/orders'],
    ['postgres://baton:secret@/orders?host=%2Frun', '/run:5432/orders'],
    ['postgres://baton:secret@db', 'db:5432/baton'],
  ])('is that of the URL %s', (url, where) => {
    vi.stubEnv('PGPORT', undefined)
    vi.stubEnv('PGDATABASE', undefined)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(describeServer(url)).toBe(where)
  })
})

import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { exportStore, importStore, type Location, verify } from '../../src/archive/store-tools.ts'
import { some } from '../store/conformance/driver.ts'
import { MINUTE } from '../store/conformance/harness.ts'
import { CleanDatabases } from '../support/clean-databases.ts'
import { recount } from '../support/recount.ts'
import { RandomLife } from './random-states.ts'
import { openAt, rowsIn, startOfTests, viewsOf } from './stores.ts'

let server: PostgresServer
let databases: CleanDatabases
beforeAll(async () => {
  server = await PostgresServer.start()
  databases = await CleanDatabases.on(server)
})
afterAll(() => server.dispose())

const stores = {
  SQLite: async (): Promise<Location> => ({ data: join(await testFolder(), 'data') }),
  PostgreSQL: async (): Promise<Location> => ({ databaseUrl: (await databases.create()).url }),
}
type Kind = keyof typeof stores

/** Applies random operations to a store and closes it. */
async function lived(location: Location, seed: number) {
  const driver = await openAt(location, startOfTests)
  const life = new RandomLife(driver, seed)
  await life.live(300)
  await life.beTold()
  await driver.store.setTable({ table: 'results.orders', maxLeases: 1_000_000 })
  const now = driver.clock.now()
  await driver.store.close()
  return { now, leases: life.leases }
}

/** Applies further operations and returns the views afterwards. */
async function goOn(location: Location, now: number, seed: number, leases: readonly string[]) {
  const driver = await openAt(location, now + MINUTE)
  const before = await viewsOf(driver)
  const life = new RandomLife(driver, seed, leases)
  await life.live(150)
  const after = await viewsOf(driver)
  await driver.store.close()
  const audit = await recount(location)
  return { before, answers: life.answers, after, audit }
}

/** Together these seeds reach every state; a test below checks that. */
const SEEDS = [1, 8]

const ways: [Kind, Kind][] = [
  ['SQLite', 'PostgreSQL'],
  ['PostgreSQL', 'SQLite'],
]

describe.each(ways)('a move from %s to %s', (from, to) => {
  test.each(SEEDS)('loses nothing, and the hand-off continues identically, seed %s', async (seed) => {
    const source = await stores[from]()
    const target = await stores[to]()
    const { now, leases } = await lived(source, seed)
    const file = join(await testFolder(), seed === SEEDS[0] ? 'moved.ndjson' : 'moved.ndjson.gz')

    const exported = await exportStore(source, { file })
    expect((await verify(file)).findings).toEqual([])
    expect(await importStore(target, { file })).toEqual(exported)

    const rows = await rowsIn(source)
    expect(await rowsIn(target)).toEqual(rows)
    // The random operations reached everything that there is.
    for (const count of Object.values(exported)) expect(count).toBeGreaterThan(0)
    expect((await verify(source)).findings).toEqual([])
    expect((await verify(target)).findings).toEqual([])

    const moved = await goOn(target, now, seed + 100, leases)
    const stayed = await goOn(source, now, seed + 100, leases)
    expect(moved).toEqual(stayed)
    expect(moved.audit).toEqual([])
    expect((await verify(target)).findings).toEqual([])
  })
})

test('a fencing token grows over a move, also if the clock of the target is behind', async () => {
  const [source, target] = [await stores.SQLite(), await stores.PostgreSQL()]
  const file = join(await testFolder(), 'moved.ndjson')
  const before = await openAt(source, startOfTests)
  await before.callBack('a', some(0, 1))
  const { lease, leaseId } = await before.pullOne()
  await before.settle(leaseId, { outcome: 'released' })
  await before.store.close()

  await exportStore(source, { file })
  await importStore(target, { file })
  const after = await openAt(target, startOfTests - MINUTE)
  expect((await after.pullOne()).lease?.fencingToken).toBe((lease?.fencingToken ?? 0) + 1)
  await after.store.close()
})

test('the moved data contains every state', async () => {
  const seen = new Set<string>()
  for (const seed of SEEDS) {
    const location = await stores.SQLite()
    await lived(location, seed)
    const { partitions, tasks } = (await rowsIn(location)) as {
      partitions: { state: string; dueAt: number | null }[]
      tasks: { state: string; purgedAt: number | null; paused: boolean; sealed: boolean }[]
    }
    for (const { state, dueAt } of partitions) seen.add(dueAt === null ? state : `${state} with a time`)
    for (const { state, purgedAt, paused, sealed } of tasks)
      seen.add(
        `${state}${purgedAt === null ? '' : ' purged'}${paused ? ' paused' : ''}${sealed ? ' sealed' : ''}`,
      )
  }
  expect([...seen]).toEqual(
    expect.arrayContaining(['ready', 'ready with a time', 'leased with a time', 'delayed with a time']),
  )
  for (const what of ['parked', 'done', 'cancelled', 'purged', 'paused', 'sealed'])
    expect([...seen].some((one) => one.includes(what))).toBe(true)
})

test('a store that does not exist is neither exported nor created', async () => {
  const file = join(await testFolder(), 'empty.ndjson')
  const data = join(await testFolder(), 'data')
  await expect(exportStore({ data }, { file })).rejects.toThrow('baton.db does not exist')
  const { url: databaseUrl } = await server.createDatabase()
  // Refused again: the first try has not created the schema.
  for (const _ of ['first', 'second'])
    await expect(exportStore({ databaseUrl }, { file })).rejects.toThrow('contains no data of Baton')
  expect([file, data].filter(existsSync)).toEqual([])
})

test('an exported file is private, compressed if its name says so, and replaces another only on request', async () => {
  const location = await stores.SQLite()
  await lived(location, 1)
  const folder = await testFolder()
  const plain = join(folder, 'plain.ndjson')
  const packed = join(folder, 'packed.ndjson.gz')
  await exportStore(location, { file: plain })
  await exportStore(location, { file: packed })
  const withoutTime = (text: string) =>
    text.replace(/"exportedAt":"[^"]*"/, '').replace(/"sha256":"[^"]*"/, '')
  expect(withoutTime(gunzipSync(readFileSync(packed)).toString())).toBe(
    withoutTime(readFileSync(plain, 'utf8')),
  )
  expect(statSync(plain).mode & 0o777).toBe(0o600)

  await expect(exportStore(location, { file: plain })).rejects.toThrow('already exists')
  await exportStore(location, { file: plain, mayReplace: true })
})

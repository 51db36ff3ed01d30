import { fill, sourceOf } from '../disk/archive.ts'
import { refuseOtherVersion } from '../disk/schema-version.ts'
import type { ArchiveSource } from '../handoff/archived.ts'
import type { Disk } from '../handoff/disk.ts'
import { openEngine } from '../handoff/engine/engine-store.ts'
import type { Policy } from '../handoff/rules/policy.ts'
import { StoreRefused } from '../handoff/store.ts'

// What reads and fills a store. Only the code of the requested store is loaded.

export type Location = { readonly data: string } | { readonly databaseUrl: string }

/** `findDamage` checks the file of a store, if it has one, and lists what is wrong. */
type Reading<Result> = (source: ArchiveSource, findDamage: () => readonly string[]) => Promise<Result>

/** Reads a consistent snapshot of a store, whether a service uses it or not. Writes nothing. */
export async function withSource<Result>(location: Location, work: Reading<Result>): Promise<Result> {
  if ('databaseUrl' in location) {
    const { archivedStore, beginReading, refuseOtherSchema, withConnection } = await import(
      '../disk/postgres/archive.ts'
    )
    return withConnection(location.databaseUrl, async (connection) => {
      await refuseOtherSchema(connection, false)
      await beginReading(connection)
      return work(await sourceOf(archivedStore(connection)), () => [])
    })
  }
  const { dataFileIn } = await import('../disk/sqlite/archive.ts')
  return withFileSource(dataFileIn(location.data), work)
}

export async function withFileSource<Result>(path: string, work: Reading<Result>): Promise<Result> {
  const [{ archivedStore, damageIn, withSnapshot }, { versionOf }] = await Promise.all([
    import('../disk/sqlite/archive.ts'),
    import('../disk/sqlite/migrate.ts'),
  ])
  return withSnapshot(path, async (db) => {
    refuseOtherVersion(path, versionOf(db))
    return work(await sourceOf(archivedStore(db)), () => damageIn(db))
  })
}

/** A store that only this program uses, with all entries flushed to rows. */
interface StoppedStore {
  /** Imports all rows or nothing. */
  fill(source: ArchiveSource): Promise<void>
  /** Rejects if a service was started in the meantime. */
  confirm(): Promise<void>
}

/** `mayBeNew`: a store that does not exist is created. */
export async function withStoppedStore<Result>(
  location: Location,
  mayBeNew: boolean,
  work: (stopped: StoppedStore) => Promise<Result>,
): Promise<Result> {
  return 'databaseUrl' in location
    ? withStoppedPostgres(location.databaseUrl, mayBeNew, work)
    : withStoppedSqlite(location.data, mayBeNew, work)
}

async function withStoppedSqlite<Result>(
  folder: string,
  mayBeNew: boolean,
  work: (stopped: StoppedStore) => Promise<Result>,
): Promise<Result> {
  const [{ openSqliteDisk }, archive, { DatabaseSync }] = await Promise.all([
    import('../disk/sqlite/sqlite-disk.ts'),
    import('../disk/sqlite/archive.ts'),
    import('node:sqlite'),
  ])
  const { archivedStore, dataFileIn, refuseAbsent } = archive
  if (!mayBeNew) refuseAbsent(dataFileIn(folder))
  const disk = await openSqliteDisk({ folder })
  return withEngineAtRest(disk, () =>
    work({
      async fill(source) {
        const db = new DatabaseSync(dataFileIn(folder))
        try {
          await fill(archivedStore(db), source)
        } finally {
          db.close()
        }
      },
      // The folder is locked, so no service can have started.
      confirm: async () => {},
    }),
  )
}

async function withStoppedPostgres<Result>(
  url: string,
  mayBeNew: boolean,
  work: (stopped: StoppedStore) => Promise<Result>,
): Promise<Result> {
  const [{ openPostgresDisk }, archive] = await Promise.all([
    import('../disk/postgres/postgres-disk.ts'),
    import('../disk/postgres/archive.ts'),
  ])
  const { archivedStore, refuseOtherSchema, refuseRunningNodes, withConnection } = archive
  await withConnection(url, async (connection) => {
    await refuseOtherSchema(connection, mayBeNew)
    await refuseRunningNodes(connection)
  })
  const disk = await openPostgresDisk({ url, node: { nodeId: `tools-${process.pid}`, url: '' } })
  return withEngineAtRest(disk, async () => {
    const { term } = await disk.readLeaderRow()
    return work({
      fill: (source) =>
        withConnection(url, (connection) => fill(archivedStore(connection, term ?? ''), source)),
      async confirm() {
        if ((await disk.readLeaderRow()).term !== term)
          throw new StoreRefused(
            'a node was started on the database in the meantime; stop it and repeat the command',
          )
      },
    })
  })
}

/** Opens the engine once, which flushes all entries and drops unfinished call-backs. It has no timers. */
async function withEngineAtRest<Result>(disk: Disk, work: () => Promise<Result>): Promise<Result> {
  const engine = await openEngine({
    disk,
    policy: UNUSED,
    clock: Date.now,
    random: Math.random,
    secret: () => 'unused-unused-un',
  }).catch(async (error: unknown) => {
    await disk.close()
    throw error
  })
  try {
    // Views flush all entries first.
    await engine.task('')
    return await work()
  } finally {
    await engine.close()
  }
}

/** Not used, because nothing is handed out here. */
const UNUSED: Policy = {
  delivery: 'at-least-once',
  leaseMillis: 1,
  leaseMillisPerThousandRecords: 0,
  maxAttempts: 1,
  backoffMillis: 1,
  backoffMaxMillis: 1,
  levelBarrier: false,
}

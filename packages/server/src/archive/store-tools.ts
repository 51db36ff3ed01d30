import { type PerSection, type Progress, totalRows } from '../handoff/archived.ts'
import { StoreRefused } from '../handoff/store.ts'
import { check } from './check.ts'
import { PrivateOutput, writeArchive } from './export-file.ts'
import { openArchive, startOf } from './import-file.ts'
import { type Location, withFileSource, withSource, withStoppedStore } from './stores.ts'

// The operator's tools for a store: backup, verification, export and import.

export type { PerSection, Progress } from '../handoff/archived.ts'
export { StoreRefused, StoreUnavailable } from '../handoff/store.ts'
export type { Section } from '../handoff/table-fields.ts'
export type { Location } from './stores.ts'

/** Names a store for people: its data file, or the database without its password. */
export async function describeStore(location: Location): Promise<string> {
  if (!('databaseUrl' in location))
    return (await import('../disk/sqlite/archive.ts')).dataFileIn(location.data)
  const { describeServer } = await import('../disk/postgres/session/connector.ts')
  return `PostgreSQL ${describeServer(location.databaseUrl)}`
}

export interface OutputOptions {
  readonly file: string
  /** Whether a file of that name may be replaced. */
  readonly mayReplace?: boolean
  readonly progress?: Progress | undefined
}

/** Copies the data file while the service runs. */
export async function backUp(location: Location, options: OutputOptions): Promise<void> {
  const { file, mayReplace = false, progress } = options
  if ('databaseUrl' in location)
    throw new StoreRefused(
      'this command is for the embedded store; back up PostgreSQL with its own tools, such as pg_dump --schema=baton (see docs/fail-over.md)',
    )
  const { copySnapshot, dataFileIn } = await import('../disk/sqlite/archive.ts')
  const output = new PrivateOutput(file, mayReplace)
  try {
    await copySnapshot(dataFileIn(location.data), output.temporary, progress)
    output.publish()
  } catch (error) {
    output.discard()
    throw error
  }
}

export interface Verified {
  readonly findings: readonly string[]
  readonly counts: PerSection<number>
}

/** Checks a store, whether a service uses it or not; or, given a file name, a backup or an export. */
export async function verify(what: Location | string, progress?: Progress): Promise<Verified> {
  if (typeof what !== 'string')
    return withSource(what, (source, damage) => verifySource(source, damage, progress))
  if (await isDatabase(what))
    return withFileSource(what, (source, damage) => verifySource(source, damage, progress))
  return verifySource(await openArchive(what), [], progress)
}

async function verifySource(
  source: Parameters<typeof check>[0],
  damage: readonly string[],
  progress: Progress | undefined,
): Promise<Verified> {
  const findings = damage.map((text) => `the file is damaged: ${text}`)
  const checked = await check(source, progress)
  return { findings: [...findings, ...checked.findings], counts: checked.counts }
}

/** No service may use the store: its later changes would be missing. */
export async function exportStore(location: Location, options: OutputOptions): Promise<PerSection<number>> {
  const { file, mayReplace = false, progress } = options
  return withStoppedStore(location, { mayBeNew: false }, (stopped) =>
    stopped.source(async (source) => {
      await writeArchive(source, { file, mayReplace, progress, confirm: stopped.confirm })
      return source.counts
    }),
  )
}

export interface ImportOptions {
  readonly file: string
  readonly progress?: Progress | undefined
}

/** Imports an export into an empty store, completely or not at all. The whole file is checked first. */
export async function importStore(location: Location, options: ImportOptions): Promise<PerSection<number>> {
  const { file, progress } = options
  const checked = await openArchive(file)
  const total = 2 * totalRows(checked.counts)
  const { findings } = await check(checked, (done) => progress?.(done, total))
  if (findings.length > 0)
    throw new StoreRefused(
      `${file} is inconsistent; nothing was imported: ${findings.slice(0, 5).join('; ')}${findings.length > 5 ? `; and ${findings.length - 5} more` : ''}`,
    )
  return withStoppedStore(location, { mayBeNew: true }, (stopped) =>
    stopped.target(async (target) => {
      const source = await openArchive(file)
      await target.fill(withProgress(source.batches(), total, progress), source.nextIds, source.counts)
      return source.counts
    }),
  )
}

async function* withProgress<Batch extends { readonly rows: readonly unknown[] }>(
  batches: AsyncIterable<Batch>,
  total: number,
  progress: Progress | undefined,
): AsyncIterable<Batch> {
  let done = total / 2
  for await (const batch of batches) {
    yield batch
    done += batch.rows.length
    progress?.(done, total)
  }
}

const SQLITE = 'SQLite format 3\0'

async function isDatabase(path: string): Promise<boolean> {
  return (await startOf(path, SQLITE.length)).toString('latin1') === SQLITE
}

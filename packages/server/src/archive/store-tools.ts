import { type ArchiveSource, type PerSection, type Progress, withProgress } from '../handoff/archived.ts'
import { StoreRefused } from '../handoff/store.ts'
import { type Checked, check } from './check.ts'
import { writeArchive } from './export-file.ts'
import { openArchive, startOf } from './import-file.ts'
import { writePrivately } from './private-output.ts'
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
  await writePrivately(file, mayReplace, (path) => copySnapshot(dataFileIn(location.data), path, progress))
}

/** Checks a store, whether a service uses it or not; or, given a file name, a backup or an export. */
export async function verify(what: Location | string, progress?: Progress): Promise<Checked> {
  const checkAll = async (source: ArchiveSource, findDamage: () => readonly string[]) => {
    const damage = findDamage().map((text) => `the file is damaged: ${text}`)
    const { findings, counts } = await check(withProgress(source, progress))
    return { findings: [...damage, ...findings], counts }
  }
  if (typeof what !== 'string') return withSource(what, checkAll)
  if (await isDatabase(what)) return withFileSource(what, checkAll)
  return checkAll(await openArchive(what), () => [])
}

/** No service may use the store: its later changes would be missing. */
export async function exportStore(location: Location, options: OutputOptions): Promise<PerSection<number>> {
  const { file, mayReplace = false, progress } = options
  return withStoppedStore(location, false, ({ confirm }) =>
    withSource(location, async (source) => {
      await writeArchive(withProgress(source, progress), { file, mayReplace, confirm })
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
  const checked = withProgress(await openArchive(file), (done, total) => progress?.(done, 2 * total))
  const { findings } = await check(checked)
  if (findings.length > 0)
    throw new StoreRefused(
      `${file} is inconsistent; nothing was imported: ${findings.slice(0, 5).join('; ')}${findings.length > 5 ? `; and ${findings.length - 5} more` : ''}`,
    )
  return withStoppedStore(location, true, async ({ fill }) => {
    const source = await openArchive(file)
    await fill(withProgress(source, (done, total) => progress?.(total + done, 2 * total)))
    return source.counts
  })
}

const SQLITE = 'SQLite format 3\0'

async function isDatabase(path: string): Promise<boolean> {
  return (await startOf(path, SQLITE.length)).toString('latin1') === SQLITE
}

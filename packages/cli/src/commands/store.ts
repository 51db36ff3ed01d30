import { statSync } from 'node:fs'
import type { Location, PerSection, Progress } from '@baton/server/store-tools'
import type { Arguments, Command, Flags } from '../command-line.ts'
import { exitCodes, Refusal, UsageError } from '../errors.ts'
import { counted } from '../show/numbers.ts'
import { ProgressLine } from '../show/progress.ts'
import { answer, print, printJson, shown } from '../terminal.ts'

/**
 * The location of the data, with the same flags as `baton serve`. These commands read the store directly,
 * without the service.
 */
const storeFlags = {
  data: {
    kind: 'text',
    placeholder: 'FOLDER',
    variable: 'BATON_DATA',
    default: './data',
    description: 'data folder of the embedded store',
  },
  'database-url': {
    kind: 'text',
    placeholder: 'URL',
    variable: 'BATON_DATABASE_URL',
    description:
      'URL of the PostgreSQL database, instead of a folder; prefer the variable, which other users cannot see',
  },
  json: { kind: 'switch', description: 'print JSON, including errors' },
} satisfies Flags

/** A flag beats a variable. In the environment, the database beats the folder. */
function locationOf(given: Arguments): Location {
  const isTyped = (flag: string) => given.text(flag) !== undefined && given.sourceOf(flag) === `--${flag}`
  const databaseUrl = given.text('database-url')
  if (databaseUrl === undefined) return { data: given.textOrDefault('data') }
  if (!isTyped('data')) return { databaseUrl }
  if (isTyped('database-url')) throw new UsageError('--data and --database-url cannot be combined')
  return { data: given.textOrDefault('data') }
}

type StoreTools = typeof import('@baton/server/store-tools')

/**
 * Runs an operation with a progress bar. Converts errors of the store or the file to messages without a stack
 * trace.
 */
async function withStoreTools<Result>(
  label: string,
  work: (tools: StoreTools, progress: Progress) => Promise<Result>,
): Promise<Result> {
  const tools = await import('@baton/server/store-tools')
  let line: ProgressLine | undefined
  let shown = 0
  const progress: Progress = (done, total) => {
    line ??= new ProgressLine(label, total)
    line.advance(done - shown)
    shown = done
  }
  try {
    return await work(tools, progress)
  } catch (error) {
    if (error instanceof tools.StoreRefused || error instanceof tools.StoreUnavailable)
      throw new Refusal(error.message, { cause: error })
    throw error
  } finally {
    line?.[Symbol.dispose]()
  }
}

const rowsIn = ({ tasks, partitions }: PerSection<number>) =>
  `${counted(tasks, 'task')}, ${counted(partitions, 'partition')}`

export const importCommand: Command = {
  operands: 'FILE',
  operandCount: [1, 1],
  details:
    'Imports a file that `baton export` wrote into an empty store, completely or not at all. The file is checked before the\nimport, and the number of rows after it. No service may be running on the store.',
  flags: storeFlags,
  examples: [
    { line: 'baton import --data /var/lib/baton baton.ndjson.gz', says: 'Into the embedded store' },
    {
      line: 'BATON_DATABASE_URL=postgres://baton@db/baton baton import baton.ndjson.gz',
      says: 'Into PostgreSQL',
    },
  ],
  run: async (given) => {
    const [file = ''] = given.operands
    const location = locationOf(given)
    const { counts, store } = await withStoreTools('importing', async (tools, progress) => ({
      counts: await tools.importStore(location, { file, progress }),
      store: await tools.describeStore(location),
    }))
    answer(given, { file, store, counts }, () => `${rowsIn(counts)} imported into ${shown(store)}`)
    return exitCodes.ok
  },
}

export const exportCommand: Command = {
  operands: 'FILE',
  operandCount: [1, 1],
  details:
    'Exports the data of a store to a file for `baton import`: tasks, partitions, leases, counters, the order, keys. The\nfile is compressed if its name ends with .gz. The service must be stopped, or later changes would be missing.',
  flags: {
    ...storeFlags,
    force: { kind: 'switch', description: 'replace an existing file' },
  },
  examples: [
    { line: 'baton export --data /var/lib/baton baton.ndjson.gz', says: 'From the embedded store' },
    {
      line: 'BATON_DATABASE_URL=postgres://baton@db/baton baton export baton.ndjson.gz',
      says: 'From PostgreSQL',
    },
  ],
  run: async (given) => {
    const [file = ''] = given.operands
    const location = locationOf(given)
    const { counts, store } = await withStoreTools('exporting', async (tools, progress) => ({
      counts: await tools.exportStore(location, { file, mayReplace: given.switch('force'), progress }),
      store: await tools.describeStore(location),
    }))
    answer(given, { file, store, counts }, () => `${file}: ${rowsIn(counts)} exported from ${shown(store)}`)
    return exitCodes.ok
  },
}

export const backup: Command = {
  operands: 'FILE',
  operandCount: [1, 1],
  details:
    'Copies the data of the embedded store to one file. The service can be running and is not interrupted. To restore,\nput the file as baton.db into an empty folder and start the service on it. For PostgreSQL, use its own tools.',
  flags: {
    ...storeFlags,
    force: { kind: 'switch', description: 'replace an existing file' },
  },
  examples: [
    { line: 'baton backup --data /var/lib/baton /backup/baton-2026-03-01.db', says: 'Each night' },
    { line: 'baton backup today.db --force && baton verify today.db', says: 'Back up and verify' },
  ],
  run: async (given) => {
    const [file = ''] = given.operands
    await withStoreTools('copying', (tools, progress) =>
      tools.backUp(locationOf(given), { file, mayReplace: given.switch('force'), progress }),
    )
    const { size } = statSync(file)
    answer(given, { file, bytes: size }, () => `${file}: ${(size / 2 ** 20).toFixed(1)} MiB`)
    return exitCodes.ok
  },
}

const SHOWN_FINDINGS = 100

export const verify: Command = {
  operands: '[FILE]',
  operandCount: [0, 1],
  details:
    'Checks a store, a backup or an export completely: counters against partitions, the order of the hand-off, leases, level\nbarriers, indexes. The service can be running. Changes nothing. Exits with 1 if something is wrong.',
  flags: storeFlags,
  examples: [
    { line: 'baton verify --data /var/lib/baton', says: 'The store of a service that may be running' },
    { line: 'baton verify baton-backup.db', says: 'A backup' },
  ],
  run: async (given) => {
    const [file] = given.operands
    const what = file ?? locationOf(given)
    const { findings, counts, store } = await withStoreTools('checking', async (tools, progress) => ({
      ...(await tools.verify(what, progress)),
      store: typeof what === 'string' ? what : await tools.describeStore(what),
    }))
    if (given.switch('json')) printJson({ sound: findings.length === 0, store, findings, counts })
    else if (findings.length === 0) print(`OK: ${rowsIn(counts)} in ${shown(store)}`)
    else {
      print(`${counted(findings.length, 'error')} in ${shown(store)}`)
      for (const finding of findings.slice(0, SHOWN_FINDINGS)) print(shown(finding))
      const more = findings.length - SHOWN_FINDINGS
      if (more > 0) print(`and ${more} more; --json lists all of them`)
    }
    return findings.length === 0 ? exitCodes.ok : exitCodes.refused
  },
}

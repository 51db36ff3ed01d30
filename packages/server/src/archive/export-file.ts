import { createHash } from 'node:crypto'
import {
  closeSync,
  createWriteStream,
  fchmodSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { SCHEMA_VERSION } from '../disk/schema-version.ts'
import {
  type ArchiveSource,
  bigFields,
  fieldNames,
  type PerSection,
  type RowBatch,
} from '../handoff/archived.ts'
import { StoreRefused } from '../handoff/store.ts'
import type { NextIds } from '../handoff/stored.ts'
import type { Section } from '../handoff/table-fields.ts'
import { version } from '../version.ts'

// The lines of an export; see docs/backup.md. Each line is JSON: the header, then for each section a
// line with its name and fields and one line per row, then the end.

export const FORMAT = 'baton-export'

export interface Header {
  readonly format: typeof FORMAT
  /** The version of the schema, as that of a store. */
  readonly schema: number
  /** The version of the program that wrote the file, for information only. */
  readonly program: string
  readonly exportedAt: string
  readonly nextIds: NextIds
  readonly counts: PerSection<number>
}

export interface SectionLine {
  readonly section: Section
  readonly fields: readonly string[]
}

/** The checksum covers all previous lines with their line feeds. */
export interface EndLine {
  readonly end: { readonly sha256: string }
}

type Row = Record<string, unknown>

function encodeRows({ section, rows }: RowBatch): string {
  const fields = fieldNames[section]
  const big = bigFields(section)
  let lines = ''
  for (const row of rows as readonly object[] as readonly Row[]) {
    const values = fields.map((field) => (big.has(field) ? asText(row[field]) : row[field]))
    lines += `${JSON.stringify(values)}\n`
  }
  return lines
}

const asText = (value: unknown): string | null => (value === null ? null : String(value))

export function rowReader({ section, fields }: SectionLine): (values: readonly unknown[]) => object {
  const big = bigFields(section)
  return (values) => {
    if (values.length !== fields.length)
      throw new SyntaxError(`a row has ${values.length} values for ${fields.length} fields`)
    const row: Row = {}
    for (const [at, field] of fields.entries()) {
      const value = values[at]
      row[field] = big.has(field) && value !== null ? BigInt(value as string) : value
    }
    return row
  }
}

/** Private to this user, because the file contains lease ids. */
const FILE_MODE = 0o600
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** It has its name only when it is complete: a failure leaves no partial file and destroys no earlier one. */
export class PrivateOutput {
  /** The path to write to until `publish`. An empty file exists there already. */
  readonly temporary: string
  readonly #path: string
  readonly #mayReplace: boolean

  constructor(path: string, mayReplace: boolean) {
    this.#path = resolve(path)
    this.#mayReplace = mayReplace
    this.temporary = `${this.#path}.${process.pid}.part`
    if (path === '-' || statSync(this.#path, { throwIfNoEntry: false })?.isFile() === false)
      throw new StoreRefused(
        `${path} is not a regular file, and the output must be one: it gets its name when it is complete`,
      )
    if (!mayReplace && lstatSync(this.#path, { throwIfNoEntry: false }) !== undefined) throw this.#isThere()
    const file = openSync(this.temporary, 'wx', FILE_MODE)
    // The mode must not depend on the umask.
    fchmodSync(file, FILE_MODE)
    closeSync(file)
    for (const signal of SIGNALS) process.once(signal, this.#onSignal)
  }

  /** Call this when the file is complete. When it returns, the file is durable under its name. */
  publish(): void {
    sync(this.temporary)
    if (this.#mayReplace) renameSync(this.temporary, this.#path)
    else {
      try {
        // Unlike a rename, a link fails if the name exists by now.
        linkSync(this.temporary, this.#path)
      } catch (error) {
        throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? this.#isThere() : error
      }
      rmSync(this.temporary)
    }
    sync(dirname(this.#path))
    this.#stopListening()
  }

  discard(): void {
    this.#stopListening()
    // SQLite may have left a journal next to it.
    for (const path of [this.temporary, `${this.temporary}-journal`]) rmSync(path, { force: true })
  }

  /** Cleans up, then lets the signal end the process. */
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.discard()
    process.kill(process.pid, signal)
  }

  #stopListening(): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal)
  }

  #isThere(): StoreRefused {
    return new StoreRefused(`${this.#path} already exists; choose another name, or replace it with --force`)
  }
}

function sync(path: string): void {
  // A folder cannot be opened on Windows, and need not be synced there.
  if (process.platform === 'win32') return
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

interface WriteOptions {
  /** Compressed if its name ends with .gz. */
  readonly file: string
  readonly mayReplace: boolean
  /** Called after everything was read, before the file is published. If it rejects, the file is discarded. */
  readonly confirm: () => Promise<void>
}

export async function writeArchive(source: ArchiveSource, options: WriteOptions): Promise<void> {
  const { file, mayReplace, confirm } = options
  const output = new PrivateOutput(file, mayReplace)
  try {
    const lines = Readable.from(linesOf(source), { objectMode: false })
    const target = createWriteStream(output.temporary)
    if (file.endsWith('.gz')) await pipeline(lines, createGzip(), target)
    else await pipeline(lines, target)
    await confirm()
    output.publish()
  } catch (error) {
    output.discard()
    throw error
  }
}

async function* linesOf({ nextIds, counts, batches }: ArchiveSource): AsyncIterable<string> {
  const hash = createHash('sha256')
  const hashed = (text: string) => {
    hash.update(text)
    return text
  }
  const line = (value: Header | SectionLine | EndLine) => `${JSON.stringify(value)}\n`
  const exportedAt = new Date().toISOString()
  yield hashed(
    line({ format: FORMAT, schema: SCHEMA_VERSION, program: version, exportedAt, nextIds, counts }),
  )
  let named: Section | undefined
  for await (const batch of batches()) {
    const { section } = batch
    // Sections without rows are listed, too, so that the file shows what its program knows.
    if (section !== named) yield hashed(line({ section, fields: fieldNames[section] }))
    named = section
    if (batch.rows.length > 0) yield hashed(encodeRows(batch))
  }
  yield line({ end: { sha256: hash.digest('hex') } })
}

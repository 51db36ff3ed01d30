import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
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
import type { NextIds } from '../handoff/stored.ts'
import type { Section } from '../handoff/table-fields.ts'
import { version } from '../version.ts'
import { writePrivately } from './private-output.ts'

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

interface WriteOptions {
  /** Compressed if its name ends with .gz. */
  readonly file: string
  readonly mayReplace: boolean
  /** Called after everything was read, before the file is published. If it rejects, the file is discarded. */
  readonly confirm: () => Promise<void>
}

export async function writeArchive(source: ArchiveSource, options: WriteOptions): Promise<void> {
  const { file, mayReplace, confirm } = options
  await writePrivately(file, mayReplace, async (path) => {
    const lines = Readable.from(linesOf(source), { objectMode: false })
    const target = createWriteStream(path)
    if (file.endsWith('.gz')) await pipeline(lines, createGzip(), target)
    else await pipeline(lines, target)
    await confirm()
  })
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

import { addedFields, bigFields, type PerSection, type RowBatch, type Section } from '../handoff/archived.ts'
import type { NextIds } from '../handoff/stored.ts'

// The lines of an export; see docs/export-format.md. Each line is JSON: the header, then for each section a
// line with its name and fields and one line per row, then the end.

export const FORMAT = 'baton-export'

/**
 * Increased when earlier programs would misread a file. New fields and sections need no new version, since
 * the file names them.
 */
export const FORMAT_VERSION = 1

export interface Header {
  readonly format: typeof FORMAT
  readonly version: number
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

export function encodeRows({ section, rows }: RowBatch, fields: readonly string[]): string {
  const big = bigFields(section)
  let lines = ''
  for (const row of rows as readonly object[] as readonly Row[]) {
    const values = fields.map((field) => (big.has(field) ? asText(row[field]) : row[field]))
    lines += `${JSON.stringify(values)}\n`
  }
  return lines
}

const asText = (value: unknown): string | null => (value === null ? null : String(value))

/** Reads the rows of a section. */
export function rowReader({ section, fields }: SectionLine): (values: readonly unknown[]) => object {
  const big = bigFields(section)
  const added = addedFields(section)
  return (values) => {
    if (values.length !== fields.length)
      throw new SyntaxError(`a row has ${values.length} values for ${fields.length} fields`)
    const row: Row = Object.fromEntries(added.map((field) => [field, null]))
    for (const [at, field] of fields.entries()) {
      const value = values[at]
      row[field] = big.has(field) && value !== null ? BigInt(value as string) : value
    }
    return row
  }
}

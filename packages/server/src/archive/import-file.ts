import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { SCHEMA_VERSION, unreleased } from '../disk/schema-version.ts'
import {
  type ArchiveSource,
  fieldNames,
  type PerSection,
  perSection,
  type RowBatch,
} from '../handoff/archived.ts'
import { StoreRefused } from '../handoff/store.ts'
import { type Section, sections } from '../handoff/table-fields.ts'
import { type EndLine, FORMAT, type Header, rowReader, type SectionLine } from './export-file.ts'

const BATCH = 1000
const GZIP = Buffer.from([0x1f, 0x8b])

/** Opens an export, to be read once. Faults are reported as StoreRefused with the line number. */
export async function openArchive(path: string): Promise<ArchiveSource> {
  const lines = await Lines.of(path)
  const { nextIds, counts } = readHeader((await lines.next()) ?? '', path)
  return { nextIds, counts, unflushed: [], batches: () => batchesIn(lines, counts, path) }
}

async function* batchesIn(lines: Lines, counts: PerSection<number>, path: string): AsyncIterable<RowBatch> {
  const counted: Record<string, number> = { ...perSection(() => 0) }
  let named = 0
  let section: Section | undefined
  let read: ReturnType<typeof rowReader> | undefined
  let rows: object[] = []
  let isEnded = false
  const batch = () => {
    const full = { section, rows } as unknown as RowBatch
    rows = []
    return full
  }
  for (let line = await lines.next(); line !== null; line = await lines.next()) {
    if (isEnded) throw lines.refusal('the file has data after its end')
    const value = lines.reading(() => parse(line))
    if (Array.isArray(value)) {
      if (read === undefined || section === undefined)
        throw lines.refusal('a row comes before the first section')
      rows.push(lines.reading(() => read?.(value) ?? {}))
      counted[section] = (counted[section] ?? 0) + 1
      if (rows.length === BATCH) yield batch()
      continue
    }
    if (rows.length > 0) yield batch()
    if ('end' in value) {
      isEnded = true
      if ((value as unknown as EndLine).end.sha256 !== lines.checksum())
        throw lines.refusal('the checksum does not match: the file was changed or damaged')
      continue
    }
    const begun = value as unknown as SectionLine
    if (begun.section !== sections[named])
      throw lines.refusal(`expected section ${sections[named] ?? 'none'}`)
    named += 1
    checkFields(begun, lines)
    section = begun.section
    read = rowReader(begun)
    yield batch()
  }
  if (!isEnded || named < sections.length) throw lines.refusal('the file is incomplete')
  for (const one of sections)
    if (counted[one] !== counts[one])
      throw new StoreRefused(`${path} should have ${counts[one]} ${one}, and has ${counted[one]}`)
}

/** The lines of a file, one after another. */
class Lines {
  readonly #path: string
  readonly #lines: AsyncIterator<string>
  readonly #hash = createHash('sha256')
  #number = 0
  #current: string | undefined

  private constructor(path: string, lines: AsyncIterator<string>) {
    this.#path = path
    this.#lines = lines
  }

  static async of(path: string): Promise<Lines> {
    const start = await startOf(path, GZIP.length)
    const bytes = createReadStream(path)
    const input = start.equals(GZIP) ? bytes.pipe(createGunzip()) : bytes
    // `pipe` does not forward errors of its source.
    if (input !== bytes) bytes.on('error', (error) => input.destroy(error))
    const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
    return new Lines(path, lines[Symbol.asyncIterator]())
  }

  async next(): Promise<string | null> {
    if (this.#current !== undefined) this.#hash.update(`${this.#current}\n`)
    try {
      const { done, value } = await this.#lines.next()
      if (done === true) return null
      this.#number += 1
      this.#current = value
      return value
    } catch (error) {
      throw this.refusal(`${(error as Error).message}; the file is damaged or incomplete`, error)
    }
  }

  /** Of all lines before the current one. */
  checksum(): string {
    return this.#hash.copy().digest('hex')
  }

  /** Runs what fails if the current line is damaged. */
  reading<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (error) {
      throw this.refusal('the line cannot be read; the file is damaged', error)
    }
  }

  refusal(what: string, cause?: unknown): StoreRefused {
    return new StoreRefused(`${this.#path}:${this.#number}: ${what}`, { cause })
  }
}

function parse(line: string): unknown[] | Record<string, unknown> {
  const value: unknown = JSON.parse(line)
  if (typeof value !== 'object' || value === null) throw new SyntaxError('the line is no array or object')
  return value as unknown[] | Record<string, unknown>
}

/** The first bytes of a file. Refuses a pipe, which could not be read a second time. */
export async function startOf(path: string, length: number): Promise<Buffer> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? 'does not exist' : `cannot be read (${error.code})`
    throw new StoreRefused(`${path} ${why}`, { cause: error })
  })
  if (!found.isFile())
    throw new StoreRefused(`${path} is not a regular file; write it to one first, because it is read twice`)
  const file = await open(path, 'r')
  try {
    const start = Buffer.alloc(length)
    const { bytesRead } = await file.read(start, 0, length, 0)
    return start.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

function readHeader(line: string, path: string): Header {
  let header: Partial<Header> | null = null
  try {
    header = JSON.parse(line) as Partial<Header> | null
  } catch {
    // Reported below.
  }
  if (header?.format !== FORMAT) throw new StoreRefused(`${path} is not an export of Baton`)
  if (header.schema === undefined) throw unreleased(path, 'use the version that wrote it')
  if (header.schema !== SCHEMA_VERSION)
    throw new StoreRefused(
      `${path} has schema version ${header.schema}, not ${SCHEMA_VERSION}; use the version of Baton that wrote it, ${header.program}`,
    )
  return header as Header
}

/** A field that this program does not know would be lost, and a missing one would have to be invented. */
function checkFields({ section, fields }: SectionLine, lines: Lines): void {
  const unknown = fields.filter((field) => !fieldNames[section].includes(field))
  if (unknown.length > 0)
    throw lines.refusal(
      `${section} have the fields ${unknown.join(', ')}, which this program does not support; import with the version of Baton that wrote the file`,
    )
  const absent = fieldNames[section].filter((field) => !fields.includes(field))
  if (absent.length > 0)
    throw lines.refusal(
      `${section} lack the fields ${absent.join(', ')}; export again with this version of Baton`,
    )
}

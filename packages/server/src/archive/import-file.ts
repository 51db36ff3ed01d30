import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { SCHEMA_VERSION, unreleased } from '../disk/schema-version.ts'
import { type ArchiveSource, fieldNames, perSection, type RowBatch } from '../handoff/archived.ts'
import { StoreRefused } from '../handoff/store.ts'
import { sections } from '../handoff/table-fields.ts'
import { type EndLine, FORMAT, type Header, rowReader, type SectionLine } from './export-file.ts'

const BATCH = 1000
const GZIP = Buffer.from([0x1f, 0x8b])

/** Opens an export, to be read once. Faults are reported as StoreRefused with the line number. */
export async function openArchive(path: string): Promise<ArchiveSource & { readonly header: Header }> {
  const lines = await readLines(path)
  const refuse = (line: number, what: string) => new StoreRefused(`${path}:${line}: ${what}`)
  const first = await lines.next()
  const header = readHeader(first.done === true ? '' : first.value, path)
  const hash = createHash('sha256').update(`${first.value}\n`)
  const { counts } = header
  const counted: Record<string, number> = { ...perSection(() => 0) }

  async function* batches(): AsyncIterable<RowBatch> {
    let number = 1
    let section: SectionLine | undefined
    let read: ReturnType<typeof rowReader> | undefined
    let rows: object[] = []
    let named = 0
    let isEnded = false
    const batch = () => {
      const full = { section: section?.section, rows } as unknown as RowBatch
      rows = []
      return full
    }
    while (true) {
      const next = await nextLine(lines, path, number)
      if (next === null) break
      number += 1
      if (isEnded) throw refuse(number, 'the file has data after its end')
      const value = parse(next, path, number)
      if (Array.isArray(value)) {
        if (read === undefined || section === undefined)
          throw refuse(number, 'a row comes before the first section')
        rows.push(attempt(() => read?.(value) ?? {}, path, number))
        counted[section.section] = (counted[section.section] ?? 0) + 1
        if (rows.length === BATCH) yield batch()
      } else {
        if (rows.length > 0) yield batch()
        if ('end' in value) {
          isEnded = true
          checkEnd(value as unknown as EndLine, hash.digest('hex'), refuse, number)
          continue
        }
        section = value as unknown as SectionLine
        if (section.section !== sections[named])
          throw refuse(number, `expected section ${sections[named] ?? 'none'}`)
        named += 1
        checkFields(section, (what) => refuse(number, what))
        read = rowReader(section)
      }
      hash.update(`${next}\n`)
    }
    if (!isEnded) throw refuse(number, 'the file is incomplete')
    for (const one of sections)
      if (counted[one] !== counts[one])
        throw new StoreRefused(`${path} should have ${counts[one]} ${one}, and has ${counted[one]}`)
  }

  return {
    header,
    nextIds: header.nextIds,
    counts,
    unflushed: [],
    batches,
  }
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

async function readLines(path: string): Promise<AsyncIterator<string>> {
  const start = await startOf(path, GZIP.length)
  const bytes = createReadStream(path)
  const input = start.equals(GZIP) ? bytes.pipe(createGunzip()) : bytes
  // `pipe` does not forward errors of its source.
  if (input !== bytes) bytes.on('error', (error) => input.destroy(error))
  return createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
}

async function nextLine(lines: AsyncIterator<string>, path: string, number: number): Promise<string | null> {
  try {
    const { done, value } = await lines.next()
    return done === true ? null : value
  } catch (error) {
    throw new StoreRefused(
      `${path}:${number}: ${(error as Error).message}; the file is damaged or incomplete`,
      {
        cause: error,
      },
    )
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

function parse(line: string, path: string, number: number): unknown[] | Record<string, unknown> {
  const value = attempt(() => JSON.parse(line) as unknown, path, number)
  if (typeof value === 'object' && value !== null) return value as unknown[] | Record<string, unknown>
  throw new StoreRefused(`${path}:${number}: the line cannot be read; the file is damaged`)
}

function attempt<Result>(work: () => Result, path: string, number: number): Result {
  try {
    return work()
  } catch (error) {
    throw new StoreRefused(`${path}:${number}: the line cannot be read; the file is damaged`, {
      cause: error,
    })
  }
}

function checkEnd(
  { end }: EndLine,
  sha256: string,
  refuse: (line: number, what: string) => StoreRefused,
  number: number,
): void {
  if (end.sha256 !== sha256)
    throw refuse(number, 'the checksum does not match: the file was changed or damaged')
}

/** A field that this program does not know would be lost, and a missing one would have to be invented. */
function checkFields({ section, fields }: SectionLine, refuse: (what: string) => StoreRefused): void {
  const unknown = fields.filter((field) => !fieldNames[section].includes(field))
  if (unknown.length > 0)
    throw refuse(
      `${section} have the fields ${unknown.join(', ')}, which this program does not support; import with the version of Baton that wrote the file`,
    )
  const absent = fieldNames[section].filter((field) => !fields.includes(field))
  if (absent.length > 0)
    throw refuse(`${section} lack the fields ${absent.join(', ')}; export again with this version of Baton`)
}

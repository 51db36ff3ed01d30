import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type ArchiveSource, type Progress, type Section, sections, totalRows } from '../handoff/archived.ts'
import { version } from '../version.ts'
import { type EndLine, encodeRows, FORMAT, FORMAT_VERSION, type Header, type SectionLine } from './format.ts'
import { PrivateOutput } from './private-output.ts'

export interface WriteOptions {
  /** Compressed if its name ends with .gz. */
  readonly file: string
  readonly mayReplace: boolean
  readonly progress?: Progress | undefined
  /** Called after everything was read, before the file is published. If it rejects, the file is discarded. */
  readonly confirm?: () => Promise<void>
}

export async function writeArchive(source: ArchiveSource, options: WriteOptions): Promise<void> {
  const { file, mayReplace, progress, confirm } = options
  const output = new PrivateOutput(file, mayReplace)
  try {
    const lines = Readable.from(linesOf(source, progress), { objectMode: false })
    const target = createWriteStream(output.temporary)
    if (file.endsWith('.gz')) await pipeline(lines, createGzip(), target)
    else await pipeline(lines, target)
    await confirm?.()
    output.publish()
  } catch (error) {
    output.discard()
    throw error
  }
}

async function* linesOf(source: ArchiveSource, progress: Progress | undefined): AsyncIterable<string> {
  const hash = createHash('sha256')
  const hashed = (text: string) => {
    hash.update(text)
    return text
  }
  const line = (value: Header | SectionLine | EndLine) => `${JSON.stringify(value)}\n`
  const { nextIds, counts, fields } = source
  const exportedAt = new Date().toISOString()
  yield hashed(
    line({ format: FORMAT, version: FORMAT_VERSION, program: version, exportedAt, nextIds, counts }),
  )
  const total = totalRows(counts)
  let done = 0
  let named = 0
  /** Sections without rows are listed, too, so that the file shows what its program knows. */
  const nameUpTo = (section: Section | undefined): string => {
    const to = section === undefined ? sections.length : sections.indexOf(section) + 1
    const lines = sections.slice(named, to).map((one) => line({ section: one, fields: fields[one] }))
    named = Math.max(named, to)
    return lines.join('')
  }
  for await (const batch of source.batches()) {
    yield hashed(nameUpTo(batch.section) + encodeRows(batch, fields[batch.section]))
    done += batch.rows.length
    progress?.(done, total)
  }
  const rest = nameUpTo(undefined)
  if (rest !== '') yield hashed(rest)
  yield line({ end: { sha256: hash.digest('hex') } })
}

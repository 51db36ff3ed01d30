import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileSource, type Source } from './values.ts'

/** A source that can be read twice although it comes only once: the first reading writes it down. */
export interface Spool extends AsyncDisposable {
  readonly first: Source
  readonly again: Source
}

export async function spool(source: Source): Promise<Spool> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-'))
  const path = join(folder, 'input')
  return {
    first: { name: source.name, chunks: () => copying(source.chunks(), path) },
    again: fileSource(path, source.name),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

async function* copying(chunks: AsyncIterable<Uint8Array>, path: string) {
  const file = createWriteStream(path, { mode: 0o600 })
  for await (const chunk of chunks) {
    if (!file.write(chunk)) await once(file, 'drain')
    yield chunk
  }
  file.end()
  await once(file, 'finish')
}

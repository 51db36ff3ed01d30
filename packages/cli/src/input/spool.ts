import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SpoolError } from './spool-error.ts'
import { fileSource, type Source } from './values.ts'

/** A source that can be read twice although it comes only once: the first reading writes it down. */
export interface Spool extends AsyncDisposable {
  readonly first: Source
  readonly again: Source
}

export async function spool(source: Source): Promise<Spool> {
  const { name, adapt } = source
  const folder = await taken(name, mkdtemp(join(tmpdir(), 'baton-')))
  const path = join(folder, 'input')
  return {
    first: { name, adapt, chunks: () => copying(source, path) },
    again: { ...fileSource(path, name), adapt },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

async function* copying({ name, chunks }: Source, path: string) {
  // Not a stream: one that fails while nobody waits for it would end the program.
  await using file = await taken(name, open(path, 'w', 0o600))
  for await (const chunk of chunks()) {
    await taken(name, file.writeFile(chunk))
    yield chunk
  }
}

async function taken<T>(name: string, step: Promise<T>): Promise<T> {
  try {
    return await step
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SpoolError(
      `${name} cannot be kept in ${tmpdir()} while it is checked (${code}): ` +
        'name another folder in TMPDIR, or say --stream, which keeps nothing',
      { cause: error },
    )
  }
}

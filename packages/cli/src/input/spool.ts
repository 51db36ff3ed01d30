import { constants, createReadStream, fstatSync, openSync } from 'node:fs'
import { access, mkdtemp, open, rm, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { isatty, ReadStream } from 'node:tty'
import { UsageError } from '../errors.ts'
import { fileSource, type ReadValue, type Source } from './json-values.ts'

/**
 * The descriptors that are being sent. Acknowledged descriptors are dropped, so that memory does not grow
 * with the file. Faults only point into the current request.
 */
export class ReadWindow {
  #first = 0
  #reads: ReadValue[] = []

  add(read: ReadValue): void {
    this.#reads.push(read)
  }

  /** Drops the first `count` descriptors of the source. */
  forget(count: number): void {
    this.#reads = this.#reads.slice(count - this.#first)
    this.#first = count
  }

  at(position: number): ReadValue | undefined {
    return this.#reads[position - this.#first]
  }
}

/** A source named on the command line. */
interface GivenSource extends Source {
  /** The size of a regular file. A pipe, a terminal or stdin has none, and can be read only once. */
  readonly size: number | undefined
}

/** Opens a file, or stdin for `-`. Aborting the signal also ends the wait for a pipe, a terminal or stdin. */
export async function givenSource(path: string, signal: AbortSignal): Promise<GivenSource> {
  // stdin may be a socket, which cannot be opened by its path.
  if (path === '-' || path === '/dev/stdin') {
    return { name: 'stdin', size: undefined, chunks: () => endedBy(signal, process.stdin) }
  }
  try {
    await access(path, constants.R_OK)
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  const found = await stat(path)
  if (found.isDirectory()) throw new UsageError(`${path} is a folder, not a file`)
  if (found.isFile()) return { ...fileSource(path), size: found.size }
  return { name: path, size: undefined, chunks: () => endedBy(signal, opened(path)) }
}

/**
 * Opens a pipe or a device without blocking. A blocking open of a named pipe waits for a writer on a thread
 * that would even prevent the process from exiting.
 */
function opened(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (fstatSync(fd).isFIFO()) return new Socket({ fd, readable: true })
  return isatty(fd) ? new ReadStream(fd) : createReadStream(path, { fd })
}

async function* endedBy(signal: AbortSignal, stream: Readable): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* addAbortSignal(signal, stream)
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

/** The folder for temporary files cannot be written to: it is full, or permission is denied. */
export class SpoolError extends Error {
  override name = 'SpoolError'
}

/** Makes a source that can be read only once readable twice: the first read copies it to a file. */
interface Spool extends AsyncDisposable {
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
  // Not a stream: a stream that fails while no write is pending would end the process.
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
      `${name} cannot be stored in ${tmpdir()} for the check (${code}): ` +
        'set another folder with TMPDIR, or use --stream, which stores nothing',
      { cause: error },
    )
  }
}

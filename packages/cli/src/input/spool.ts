import { constants, createReadStream, fstatSync, openSync } from 'node:fs'
import { access, mkdtemp, open, rm, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { isatty, ReadStream } from 'node:tty'
import { UsageError } from '../errors.ts'
import { fileSource, type ReadValue, type Source } from './input.ts'

/**
 * The descriptors that are on their way. What the service has answered for is forgotten, so that the size of a file
 * does not matter: faults only ever point into the request under way.
 */
export class ReadWindow {
  #first = 0
  #reads: ReadValue[] = []

  add(read: ReadValue): void {
    this.#reads.push(read)
  }

  /** So many descriptors, from the first one on, are done with. */
  forget(count: number): void {
    this.#reads = this.#reads.slice(count - this.#first)
    this.#first = count
  }

  at(position: number): ReadValue | undefined {
    return this.#reads[position - this.#first]
  }
}

/** What was named on the command line, to read from. */
interface GivenSource extends Source {
  /** Of a file; what comes through a pipe, a terminal or stdin has no size, and comes only once. */
  readonly size: number | undefined
}

/** A file, or `-` for stdin. Aborting the signal ends the wait for what comes once, too. */
export async function givenSource(path: string, signal: AbortSignal): Promise<GivenSource> {
  // By its name in the file system stdin could not be opened where it is a socket.
  if (path === '-' || path === '/dev/stdin') {
    return { name: 'stdin', size: undefined, chunks: () => endedBy(signal, process.stdin) }
  }
  try {
    await access(path, constants.R_OK)
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  const found = await stat(path)
  if (found.isDirectory()) throw new UsageError(`${path} is a folder, not a file of descriptors`)
  if (found.isFile()) return { ...fileSource(path), size: found.size }
  return { name: path, size: undefined, chunks: () => endedBy(signal, opened(path)) }
}

/** A pipe or a device. Opened as usual, a named pipe waits for its writer on a thread that not even the exit ends. */
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

/** The folder for temporary files does not take what comes: it is full, or not ours to write to. */
export class SpoolError extends Error {
  override name = 'SpoolError'
}

/** A source that can be read twice although it comes only once: the first reading writes it down. */
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

import { constants, createReadStream, fstatSync, openSync } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { addAbortSignal, type Readable } from 'node:stream'
import { isatty, ReadStream } from 'node:tty'
import { UsageError } from '../usage-error.ts'
import { fileSource, type Source } from './values.ts'

/** What was named on the command line, to read from. */
export interface GivenSource extends Source {
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

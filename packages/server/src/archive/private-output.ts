import {
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreRefused } from '../handoff/store.ts'

/** Private to this user, because the file contains lease ids. */
const FILE_MODE = 0o600
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Calls `write` with the path of an empty file, which gets its name only when it is complete: a failure leaves no
 * partial file and destroys no earlier one. Then the file is durable.
 */
export async function writePrivately(
  file: string,
  mayReplace: boolean,
  write: (temporary: string) => Promise<void>,
): Promise<void> {
  const path = resolve(file)
  const temporary = `${path}.${process.pid}.part`
  if (file === '-' || statSync(path, { throwIfNoEntry: false })?.isFile() === false)
    throw new StoreRefused(
      `${file} is not a regular file, and the output must be one: it gets its name when it is complete`,
    )
  if (!mayReplace && lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw alreadyExists(path)
  const opened = openSync(temporary, 'wx', FILE_MODE)
  // The mode must not depend on the umask.
  fchmodSync(opened, FILE_MODE)
  closeSync(opened)
  const discard = () => {
    // SQLite may have left a journal next to it.
    for (const one of [temporary, `${temporary}-journal`]) rmSync(one, { force: true })
  }
  /** Cleans up, then lets the signal end the process. */
  const onSignal = (signal: NodeJS.Signals) => {
    discard()
    process.kill(process.pid, signal)
  }
  for (const signal of SIGNALS) process.once(signal, onSignal)
  try {
    await write(temporary)
    publish(temporary, path, mayReplace)
  } catch (error) {
    discard()
    throw error
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

function publish(temporary: string, path: string, mayReplace: boolean): void {
  sync(temporary)
  if (mayReplace) renameSync(temporary, path)
  else {
    try {
      // Unlike a rename, a link fails if the name exists by now.
      linkSync(temporary, path)
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? alreadyExists(path) : error
    }
    rmSync(temporary)
  }
  sync(dirname(path))
}

const alreadyExists = (path: string): StoreRefused =>
  new StoreRefused(`${path} already exists; choose another name, or replace it with --force`)

function sync(path: string): void {
  // A folder cannot be opened on Windows, and need not be synced there.
  if (process.platform === 'win32') return
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

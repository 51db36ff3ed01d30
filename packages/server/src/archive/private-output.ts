import { closeSync, fchmodSync, fsyncSync, linkSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreRefused } from '../handoff/store.ts'

/** For this user alone: it holds lease ids. */
const FILE_MODE = 0o600
/** What ends a command from outside. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * A file that appears under its name when it is complete, and not before. Until then it has another name beside it, so
 * that whatever goes wrong leaves neither half a file nor a lost earlier one.
 */
export class PrivateOutput {
  /** Where to write meanwhile. There is an empty file already. */
  readonly temporary: string
  readonly #path: string
  readonly #mayReplace: boolean

  constructor(path: string, mayReplace: boolean) {
    this.#path = resolve(path)
    this.#mayReplace = mayReplace
    this.temporary = `${this.#path}.${process.pid}.part`
    if (!mayReplace && lstatSync(this.#path, { throwIfNoEntry: false }) !== undefined) throw this.#isThere()
    const file = openSync(this.temporary, 'wx', FILE_MODE)
    // Whatever the umask.
    fchmodSync(file, FILE_MODE)
    closeSync(file)
    for (const signal of SIGNALS) process.once(signal, this.#onSignal)
  }

  /** The file is complete: it is on the disk under its name when this returns. */
  publish(): void {
    sync(this.temporary)
    if (this.#mayReplace) renameSync(this.temporary, this.#path)
    else {
      try {
        // Fails where something has that name by now, unlike a rename.
        linkSync(this.temporary, this.#path)
      } catch (error) {
        throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? this.#isThere() : error
      }
      rmSync(this.temporary)
    }
    sync(dirname(this.#path))
    this.#stopListening()
  }

  discard(): void {
    this.#stopListening()
    // SQLite may have a journal beside it.
    for (const path of [this.temporary, `${this.temporary}-journal`]) rmSync(path, { force: true })
  }

  /** The process ends by the signal all the same. */
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.discard()
    process.kill(process.pid, signal)
  }

  #stopListening(): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal)
  }

  #isThere(): StoreRefused {
    return new StoreRefused(`${this.#path} is there already; choose another name, or replace it with --force`)
  }
}

function sync(path: string): void {
  // A folder cannot be opened on Windows, and need not be.
  if (process.platform === 'win32') return
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

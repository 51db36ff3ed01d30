import { closeSync, fchmodSync, fsyncSync, linkSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreRefused } from '../handoff/store.ts'

/** Private to this user, because the file contains lease ids. */
const FILE_MODE = 0o600
/** Signals that end a command. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * A file that appears under its name only when it is complete. Until then it has a temporary name in the same
 * folder. So a failure never leaves a partial file, or destroys an earlier one.
 */
export class PrivateOutput {
  /** The path to write to until `publish`. An empty file exists there already. */
  readonly temporary: string
  readonly #path: string
  readonly #mayReplace: boolean

  constructor(path: string, mayReplace: boolean) {
    this.#path = resolve(path)
    this.#mayReplace = mayReplace
    this.temporary = `${this.#path}.${process.pid}.part`
    if (!mayReplace && lstatSync(this.#path, { throwIfNoEntry: false }) !== undefined) throw this.#isThere()
    const file = openSync(this.temporary, 'wx', FILE_MODE)
    // The mode must not depend on the umask.
    fchmodSync(file, FILE_MODE)
    closeSync(file)
    for (const signal of SIGNALS) process.once(signal, this.#onSignal)
  }

  /** Call this when the file is complete. When it returns, the file is durable under its name. */
  publish(): void {
    sync(this.temporary)
    if (this.#mayReplace) renameSync(this.temporary, this.#path)
    else {
      try {
        // Unlike a rename, a link fails if the name exists by now.
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
    // SQLite may have left a journal next to it.
    for (const path of [this.temporary, `${this.temporary}-journal`]) rmSync(path, { force: true })
  }

  /** Cleans up, then lets the signal end the process. */
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
  // A folder cannot be opened on Windows, and need not be synced there.
  if (process.platform === 'win32') return
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

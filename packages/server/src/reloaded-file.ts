import { type FileWatch, watchFiles } from './file-watch.ts'
import type { Log } from './handoff/log.ts'
import { SettingsError } from './settings-error.ts'

/** The content of a file. */
export interface FileContent<Value> {
  readonly value: Value
  /** Faults that are reported but do not invalidate the file. */
  readonly warnings: readonly string[]
}

export type FileReload<Value> =
  | { readonly outcome: 'applied'; readonly before: Value; readonly now: Value }
  | { readonly outcome: 'refused'; readonly faults: readonly string[] }

export interface ReloadedFileOptions<Value> {
  readonly path: string
  /** Throws a SettingsError with all faults of the file. Calls `reads` with each other file that it reads. */
  readonly read: (before: Value | undefined, reads: (path: string) => void) => FileContent<Value>
  /** The log message when a changed file is invalid. */
  readonly refusal: string
  readonly log: Log
}

/**
 * A file that is read at start and again when it changes. If the changed file is invalid, the current value
 * stays.
 */
export class ReloadedFile<Value> {
  readonly #options: ReloadedFileOptions<Value>
  readonly #listeners: ((reload: FileReload<Value>) => void)[] = []
  #watched: readonly string[] = []
  #watch: FileWatch | undefined
  #current: Value

  constructor(options: ReloadedFileOptions<Value>) {
    this.#options = options
    try {
      this.#current = this.#read(undefined)
    } catch (error) {
      this.close()
      throw error
    }
  }

  get current(): Value {
    return this.#current
  }

  onReload(listener: (reload: FileReload<Value>) => void): void {
    this.#listeners.push(listener)
  }

  reload(): void {
    const before = this.#current
    try {
      this.#current = this.#read(before)
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      const faults = error.lines
      this.#options.log.error({ faults }, this.#options.refusal)
      this.#notify({ outcome: 'refused', faults })
      return
    }
    this.#notify({ outcome: 'applied', before, now: this.#current })
  }

  close(): void {
    this.#watch?.close()
  }

  #read(before: Value | undefined): Value {
    const { path, read, log } = this.#options
    if (this.#watch === undefined) this.#watchAll([path])
    while (true) {
      const others: string[] = []
      // Files that it names must be watched before they are read for the last time, or a change in between
      // would be missed.
      const isUnwatched = () => others.some((other) => !this.#watched.includes(other))
      try {
        const { value, warnings } = read(before, (other) => others.push(other))
        if (!isUnwatched()) {
          for (const warning of warnings) log.warn({}, warning)
          return value
        }
      } catch (error) {
        if (!isUnwatched()) throw error
      }
      this.#watchAll([path, ...others])
    }
  }

  #watchAll(paths: readonly string[]): void {
    this.#watch?.close()
    this.#watched = paths
    this.#watch = watchFiles(paths, () => this.reload())
  }

  #notify(reload: FileReload<Value>): void {
    for (const listener of this.#listeners) listener(reload)
  }
}

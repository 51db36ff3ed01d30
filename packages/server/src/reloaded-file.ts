import { type FileWatch, watchFiles } from './file-watch.ts'
import type { Log } from './handoff/log.ts'
import { SettingsError } from './settings-error.ts'

/** What a file says. */
export interface FileContent<Value> {
  readonly value: Value
  /** Worth telling, no reason to refuse the file. */
  readonly warnings: readonly string[]
}

export type FileReload<Value> =
  | { readonly outcome: 'applied'; readonly before: Value; readonly now: Value }
  | { readonly outcome: 'refused'; readonly faults: readonly string[] }

export interface ReloadedFileOptions<Value> {
  readonly path: string
  /** Throws a SettingsError with everything that is wrong with it. Says which other files it reads. */
  readonly read: (before: Value | undefined, reads: (path: string) => void) => FileContent<Value>
  /** What is logged when a changed file cannot be used. */
  readonly refusal: string
  readonly log: Log
}

/** A file, read when the service starts and again when it changes. A new one that cannot be used changes nothing. */
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
      this.#tell({ outcome: 'refused', faults })
      return
    }
    this.#tell({ outcome: 'applied', before, now: this.#current })
  }

  close(): void {
    this.#watch?.close()
  }

  #read(before: Value | undefined): Value {
    const { path, read, log } = this.#options
    if (this.#watch === undefined) this.#watchAll([path])
    while (true) {
      const others: string[] = []
      // What it names is watched before it is read for good, or a change in between would go unnoticed.
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

  #tell(reload: FileReload<Value>): void {
    for (const listener of this.#listeners) listener(reload)
  }
}

import { readFileSync, type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { TObject } from 'typebox'
import { Errors } from 'typebox/schema'
import type { Log } from './handoff/log.ts'

/** A setting or command line is invalid. Each line is a complete message; no stack trace is shown. */
export class SettingsError extends Error {
  override name = 'SettingsError'
  readonly lines: readonly string[]
  /** By convention, 2 for an invalid command line and 1 for invalid values. */
  readonly exitCode: 1 | 2

  constructor(lines: readonly string[], exitCode: 1 | 2 = 1) {
    super(lines.join('; '))
    this.lines = lines
    this.exitCode = exitCode
  }
}

// JSON files that operators write: tokens and subscriptions. Messages give the position of a fault but never
// quote the content, which may be a secret.

/** The message for faults at paths that match `of`, if the schema's own message is hard to understand. */
export interface PlainFault {
  readonly of: RegExp
  readonly fault: string
}

/** `name` is the name of the file in messages. Throws a SettingsError if it cannot be read. */
export function readJsonFile(path: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const unreadable = (error as NodeJS.ErrnoException).code
    // The parser's message is not used, because it quotes the content, which may be a secret.
    const fault = unreadable === undefined ? 'is not JSON' : `cannot be read (${unreadable})`
    throw new SettingsError([`${name} ${path} ${fault}`])
  }
}

/** Returns a warning if others than the file's owner and group have access. Windows has no such modes. */
export function openToOthers(path: string, name: string): string[] {
  if (process.platform === 'win32' || (statSync(path).mode & 0o007) === 0) return []
  return [`${name} ${path} is readable by all users of the machine: run chmod 600`]
}

/** The faults of the content. Even field names are not quoted, because a secret may be there by mistake. */
export function schemaFaults(
  schema: TObject,
  content: unknown,
  at: string,
  inPlainWords: readonly PlainFault[],
): string[] {
  const [, errors] = Errors(schema, content)
  return errors.flatMap(({ keyword, instancePath, message }) => {
    // Each of these comes with another error about the object that has the field.
    if (keyword === 'boolean') return []
    const fault =
      keyword === 'additionalProperties'
        ? `must have no fields except ${Object.keys(schema.properties).join(', ')}`
        : (inPlainWords.find(({ of }) => of.test(instancePath))?.fault ?? message)
    return [`${at}${instancePath}`.replace(/^$/, '/').concat(`, which ${fault}`)]
  })
}

/** The expected form of the file is given once, with the first fault. */
export function formFaults([first, ...others]: readonly string[], form: string): string[] {
  if (first === undefined) return []
  return [
    `does not have the form ${form}: see ${first}`,
    ...others.map((fault) => `is invalid: see ${fault}`),
  ]
}

const POLL_MILLIS = 1000

/**
 * Calls `changed` when one of the files was written or replaced. Call it before the files are first read, so
 * that no later change is missed. It polls once a second, because file system notifications do not work for
 * mounted files, nor for the symbolic links that Kubernetes swaps.
 *
 * With `whenQuiet` it waits until a poll finds no further change, for related files that are written one
 * after another. Returns what ends it.
 */
function watchFiles(paths: readonly string[], changed: () => void, whenQuiet: boolean): () => void {
  let known = paths.map(marksNow).join('\n')
  let last = known
  let isLooking = false
  let isClosed = false
  const look = async () => {
    if (isLooking) return
    isLooking = true
    const seen = (await Promise.all(paths.map(marksOf))).join('\n')
    isLooking = false
    const isQuiet = seen === last
    last = seen
    if (seen === known || (whenQuiet && !isQuiet)) return
    known = seen
    if (!isClosed) changed()
  }
  const timer = setInterval(() => void look(), POLL_MILLIS).unref()
  return () => {
    isClosed = true
    clearInterval(timer)
  }
}

const marks = ({ ino, size, mtimeMs, ctimeMs }: Stats) => [ino, size, mtimeMs, ctimeMs].join()
const absent = (error: unknown) => String((error as NodeJS.ErrnoException).code)

function marksNow(path: string): string {
  try {
    return marks(statSync(path))
  } catch (error) {
    return absent(error)
  }
}

async function marksOf(path: string): Promise<string> {
  return stat(path).then(marks, absent)
}

export interface FileContent<Value> {
  readonly value: Value
  /** Faults that are reported but do not invalidate the file. */
  readonly warnings: readonly string[]
}

export type FileReload<Value> =
  | { readonly outcome: 'done'; readonly before: Value; readonly now: Value; readonly detail: string }
  | { readonly outcome: 'refused'; readonly detail: string }

interface ReloadedFileOptions<Value> {
  readonly path: string
  /** Throws a SettingsError with all faults of the file. Calls `reads` with each other file that it reads. */
  readonly read: (before: Value | undefined, reads: (path: string) => void) => FileContent<Value>
  /** See `watchFiles`. */
  readonly whenQuiet?: boolean
  /** The log message when a changed file is invalid. */
  readonly refusal: string
  readonly changed: (before: Value, now: Value) => string
  readonly log: Log
}

/** Names that a reload added and removed, and those whose value changed. */
export function changedNames(before: ReadonlyMap<string, unknown>, now: ReadonlyMap<string, unknown>) {
  const lists = {
    new: [...now.keys()].filter((name) => !before.has(name)),
    removed: [...before.keys()].filter((name) => !now.has(name)),
    changed: [...now.keys()].filter((name) => before.has(name) && before.get(name) !== now.get(name)),
  }
  return Object.entries(lists)
    .filter(([, names]) => names.length > 0)
    .map(([word, names]) => `${word}: ${names.join(', ')}`)
    .join('; ')
}

/** A file that is read again when it changes. If it is invalid then, the current value stays. */
export class ReloadedFile<Value> {
  readonly #options: ReloadedFileOptions<Value>
  readonly #listeners: ((reload: FileReload<Value>) => void)[] = []
  #watched: readonly string[] = []
  #unwatch: (() => void) | undefined
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

  #reload(): void {
    const before = this.#current
    try {
      this.#current = this.#read(before)
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      const faults = error.lines
      this.#options.log.error({ faults }, this.#options.refusal)
      this.#notify({ outcome: 'refused', detail: faults.join('; ') })
      return
    }
    const now = this.#current
    this.#notify({ outcome: 'done', before, now, detail: this.#options.changed(before, now) })
  }

  close(): void {
    this.#unwatch?.()
  }

  #read(before: Value | undefined): Value {
    const { path, read, log } = this.#options
    if (this.#unwatch === undefined) this.#watchAll([path])
    while (true) {
      const others: string[] = []
      // Files that it names are watched before they are read for the last time, so that no change is missed.
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
    this.#unwatch?.()
    this.#watched = paths
    const { whenQuiet = false } = this.#options
    this.#unwatch = watchFiles(paths, () => this.#reload(), whenQuiet)
  }

  #notify(reload: FileReload<Value>): void {
    for (const listener of this.#listeners) listener(reload)
  }
}

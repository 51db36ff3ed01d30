import type { DatabaseSync } from 'node:sqlite'
import { asUnavailable } from './failures.ts'
import { DataFolder } from './folder.ts'
import { Session } from './session.ts'

const SPACE_CHECK_MILLIS = 1000

/** The data file for as long as the service runs. It is opened again after the disk failed. */
export class OpenFile {
  readonly #folder: DataFolder
  #database: DatabaseSync | undefined
  #session: Session | undefined
  #space = { checkedAt: Number.NEGATIVE_INFINITY, enough: true }

  constructor(path: string) {
    this.#folder = new DataFolder(path)
  }

  /** Returns what to tell the operator. Throws StoreRefused when the folder cannot or must not be used. */
  lock(): readonly string[] {
    this.#folder.lock()
    try {
      this.session()
      return this.#folder.closeToOthers()
    } catch (error) {
      this.#abandon()
      this.#folder.unlock()
      throw this.#folder.refusal(error)
    }
  }

  session(): Session {
    if (this.#session === undefined) {
      this.#database = this.#folder.open()
      this.#session = new Session(this.#database)
    }
    return this.#session
  }

  /** What to tell the caller. After the disk failed nothing that the connection remembers is to be trusted. */
  failed(error: unknown): unknown {
    const unavailable = asUnavailable(error)
    if (unavailable === undefined) return error
    this.#abandon()
    return unavailable
  }

  close(): void {
    this.#abandon()
    this.#folder.unlock()
  }

  /** A call to the operating system, so not for each call-back while there is enough. */
  hasSpace(): boolean {
    const at = performance.now()
    if (at - this.#space.checkedAt >= SPACE_CHECK_MILLIS || !this.#space.enough)
      this.#space = { checkedAt: at, enough: this.#folder.hasSpace() }
    return this.#space.enough
  }

  #abandon(): void {
    this.#session = undefined
    try {
      this.#database?.close()
    } catch {
      // It was unusable; that is why it goes.
    }
    this.#database = undefined
  }
}

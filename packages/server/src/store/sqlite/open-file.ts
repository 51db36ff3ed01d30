import type { DatabaseSync } from 'node:sqlite'
import type { Policy } from '../../handoff/rules/policy.ts'
import { asUnavailable } from './failures.ts'
import { DataFolder } from './folder.ts'
import { Session } from './session.ts'

const ROOM_CHECK_MILLIS = 1000

/** The data file for as long as the service runs: opened anew after the disk failed. */
export class OpenFile {
  readonly #folder: DataFolder
  readonly #policy: Policy
  #database: DatabaseSync | undefined
  #session: Session | undefined
  #room = { checkedAt: Number.NEGATIVE_INFINITY, enough: true }

  constructor(path: string, policy: Policy) {
    this.#folder = new DataFolder(path)
    this.#policy = policy
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
      this.#session = new Session(this.#database, this.#policy, () => this.#hasRoom())
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

  close(now: number): void {
    try {
      this.#session?.writeUp(now)
    } catch {
      // The journal has it, and the next opening writes it up: an end must not fail because the disk does.
    }
    this.#abandon()
    this.#folder.unlock()
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

  #hasRoom(): boolean {
    const at = performance.now()
    if (at - this.#room.checkedAt >= ROOM_CHECK_MILLIS || !this.#room.enough)
      this.#room = { checkedAt: at, enough: this.#folder.hasRoom() }
    return this.#room.enough
  }
}

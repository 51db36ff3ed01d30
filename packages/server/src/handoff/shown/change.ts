import type { TaskRow } from './task-record.ts'

/** A partition that ran out of attempts: what an operator wants to hear of at once. */
export interface ParkedNotice {
  readonly taskId: string
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly attempts: number
  readonly reason: string | null
}

export interface ChangeQuery {
  /** The position that an earlier page gave; null asks for the present one. */
  readonly after: string | null
  /** At most so many tasks; the others follow with the next page. */
  readonly limit: number
}

/** What changed since a position: each task once, as it is now, however often it changed. */
export interface ChangePage {
  readonly next: string
  /** The position is too old or from another life of the store: whoever follows must look at everything anew. */
  readonly missed: boolean
  readonly now: number
  readonly tasks: readonly TaskRow[]
  readonly parked: readonly ParkedNotice[]
}

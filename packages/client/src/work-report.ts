import type { Renewal } from '@baton/protocol'
import { isCheckpointTooLong, MAX_CHECKPOINT_BYTES, MAX_KEPT_NOTE_LENGTH } from '@baton/protocol/core'
import type { LeaseLostError } from './errors.ts'
import { sendable } from './outcome.ts'

/** How far the work on a partition is, for operators and for the estimate of the time left. */
export interface WorkProgress {
  /** The number of records processed so far. */
  readonly records?: number
  /** What the work is at, in a few words; the first 256 characters are kept. */
  readonly note?: string
}

/** Reported progress is sent this often at most: each renewal is a write of the service. */
const PROGRESS_MILLIS = 10_000

interface Saving {
  readonly text: string | null
  readonly saved: PromiseWithResolvers<void>
}

/** What a handler said about its lease and the service does not know yet. */
export class WorkReport {
  #progress: WorkProgress | undefined
  #saving: Saving | undefined
  #progressSentAt = Number.NEGATIVE_INFINITY

  /** When it must be sent. */
  get dueAt(): number {
    if (this.#saving !== undefined) return Number.NEGATIVE_INFINITY
    return this.#progress === undefined ? Number.POSITIVE_INFINITY : this.#progressSentAt + PROGRESS_MILLIS
  }

  get hasCheckpoint(): boolean {
    return this.#saving !== undefined
  }

  progress(progress: WorkProgress): void {
    this.#progress = sendableProgress(progress)
  }

  /** Resolves when the service has stored it, or a later one. */
  save(text: string | null): Promise<void> {
    const saved = this.#saving?.saved ?? Promise.withResolvers<void>()
    // A handler need not await it.
    saved.promise.catch(() => {})
    this.#saving = { text, saved }
    return saved.promise
  }

  /** The lease has ended. Returns the checkpoint that was not sent, for the settlement; undefined if there is none. */
  end(lost?: LeaseLostError): string | null | undefined {
    if (lost === undefined) this.#saving?.saved.resolve()
    else this.#saving?.saved.reject(lost)
    return this.#saving?.text
  }

  /** The service does not take the checkpoint. */
  refuse(detail: string): void {
    this.#saving?.saved.reject(new RangeError(detail))
    this.#saving = undefined
  }

  /** The element of a renew request, and what to do when the service has taken it. */
  renewal(leaseId: string, now: number): { readonly renewal: string | Renewal; readonly taken: () => void } {
    const [progress, saving] = [this.#progress, this.#saving]
    if (progress === undefined && saving === undefined) return { renewal: leaseId, taken: () => {} }
    const taken = () => {
      if (progress !== undefined) this.#progressSentAt = now
      if (this.#progress === progress) this.#progress = undefined
      if (saving === undefined || this.#saving?.text !== saving.text) return
      this.#saving = undefined
      saving.saved.resolve()
    }
    return {
      renewal: {
        leaseId,
        ...(progress === undefined ? {} : { progress }),
        ...(saving === undefined ? {} : { checkpoint: saving.text }),
      },
      taken,
    }
  }
}

/** Throws a RangeError if a checkpoint cannot be stored. */
export function checkCheckpoint(text: string | null): void {
  if (text === null) return
  if (isCheckpointTooLong(text))
    throw new RangeError(`a checkpoint has at most ${MAX_CHECKPOINT_BYTES} bytes of UTF-8`)
  if (text.includes('\0') || !text.isWellFormed())
    throw new RangeError('a checkpoint must not contain NUL characters or lone surrogates')
}

/** Progress is for people and estimates: what cannot be sent is left out, and fails no renewal. */
function sendableProgress({ records, note }: WorkProgress): WorkProgress {
  return {
    ...(Number.isSafeInteger(records) && Number(records) >= 0 ? { records: Number(records) } : {}),
    ...(note === undefined ? {} : { note: sendable(note, MAX_KEPT_NOTE_LENGTH) }),
  }
}

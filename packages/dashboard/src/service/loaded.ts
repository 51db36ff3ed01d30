import { type ProblemCode, ProblemError } from '@baton/client'
import { explained, noteRefusal } from './connection.ts'

/** The loading state of a page's content. */
export type Loaded<Value> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'there'; readonly value: Value }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly detail: string }

/** `unknown` is the error code for an object that does not exist. */
export async function load<Value>(read: () => Promise<Value>, unknown: ProblemCode): Promise<Loaded<Value>> {
  try {
    return { kind: 'there', value: await read() }
  } catch (error) {
    noteRefusal(error)
    if (error instanceof ProblemError && error.code === unknown) return { kind: 'unknown' }
    return { kind: 'failed', detail: explained(error) }
  }
}

/** Keeps the previous value if a reload fails. */
export function shownAfter<Value>(before: Loaded<Value>, now: Loaded<Value>): Loaded<Value> {
  return now.kind === 'failed' && before.kind === 'there' ? before : now
}

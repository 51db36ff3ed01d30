import { type ProblemCode, ProblemError } from '@baton/client'
import { explained, noteRefusal } from './connection.ts'

/** What a page is about, as far as it is known. */
export type Loaded<Value> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'there'; readonly value: Value }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly detail: string }

/** `unknown` is the code by which the service says that there is no such thing. */
export async function load<Value>(read: () => Promise<Value>, unknown: ProblemCode): Promise<Loaded<Value>> {
  try {
    return { kind: 'there', value: await read() }
  } catch (error) {
    noteRefusal(error)
    if (error instanceof ProblemError && error.code === unknown) return { kind: 'unknown' }
    return { kind: 'failed', detail: explained(error) }
  }
}

/** What was there is shown on while it cannot be read again. */
export function shownAfter<Value>(before: Loaded<Value>, now: Loaded<Value>): Loaded<Value> {
  return now.kind === 'failed' && before.kind === 'there' ? before : now
}

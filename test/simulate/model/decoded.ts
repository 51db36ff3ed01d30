import { decodeEntry, type Entry } from '../../../packages/server/src/handoff/engine/entry.ts'

const MOST_KEPT = 500

/** A cache: an entry is read many times before it is flushed, and does not change. */
const known = new Map<string, Entry>()

export function decoded(body: string): Entry {
  let entry = known.get(body)
  if (entry === undefined) {
    entry = decodeEntry(body)
    if (known.size >= MOST_KEPT) known.clear()
    known.set(body, entry)
  }
  return entry
}

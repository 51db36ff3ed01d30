const WORDS_PER_KEY = 3
/** For many keys at a time: asking for each took a worker without work to do a tenth of its processor time. */
const random = new Uint32Array(WORDS_PER_KEY * 64)
let used = random.length

/**
 * Names one pull: whoever sends it again gets the leases of the first time, never new ones. It begins with the time, as
 * a UUID of version 7 does: stores then write keys of the same time side by side.
 */
export function newIdempotencyKey(): string {
  if (used === random.length) {
    // Not randomUUID, which browsers have in secure contexts only.
    crypto.getRandomValues(random)
    used = 0
  }
  let key = hexOf(Date.now(), 12)
  for (const end = used + WORDS_PER_KEY; used < end; used += 1) key += hexOf(random[used] ?? 0, 8)
  return key
}

function hexOf(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

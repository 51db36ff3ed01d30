/**
 * Names one pull: whoever sends it again gets the leases of the first time, never new ones. It begins with the time, as
 * a UUID of version 7 does: stores then write keys of the same time side by side.
 */
export function newIdempotencyKey(): string {
  // Not randomUUID, which browsers have in secure contexts only.
  const random = crypto.getRandomValues(new Uint32Array(3))
  return hexOf(Date.now(), 12) + Array.from(random, (word) => hexOf(word, 8)).join('')
}

function hexOf(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

/** Names one pull: whoever sends it again gets the leases of the first time, never new ones. */
export function newIdempotencyKey(): string {
  // Not randomUUID, which browsers have in secure contexts only.
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

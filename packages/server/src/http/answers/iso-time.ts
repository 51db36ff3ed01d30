/** A time as the wire has it. */
export function iso(at: number): string {
  return new Date(at).toISOString()
}

export function isoOrNull(at: number | null): string | null {
  return at === null ? null : iso(at)
}

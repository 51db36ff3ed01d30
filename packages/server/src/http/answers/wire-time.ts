let formatted = { millis: Number.NaN, text: '' }

/** A time as the wire has it. Leases that were granted together end together: most are formatted already. */
export function timestampOf(millis: number): string {
  if (formatted.millis !== millis) formatted = { millis, text: new Date(millis).toISOString() }
  return formatted.text
}

export function timestampOrNull(millis: number | null): string | null {
  return millis === null ? null : timestampOf(millis)
}

/** How long something goes on, as the wire has it. */
export const secondsOf = (millis: number): number => Math.max(millis, 0) / 1000

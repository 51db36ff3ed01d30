/** How far a worker is with its partition, as it last reported. */
export interface Progress {
  readonly records: number | null
  readonly note: string | null
  /** When it was reported. */
  readonly at: number
  /** Its first report of records: where the pace of the lease is measured from. Null: there is none. */
  readonly first: { readonly records: number; readonly at: number } | null
}

/** What a renewal says about it. */
export type ReportedProgress = Pick<Progress, 'records' | 'note'>

export const withReported = (
  before: Progress | null,
  { records, note }: ReportedProgress,
  now: number,
): Progress => ({
  records,
  note,
  at: now,
  first: before?.first ?? (records === null ? null : { records, at: now }),
})

interface Reporting {
  readonly leasedAt: number
  readonly recordCount: number
  readonly progress: Progress | null
}

/**
 * How long a lease still needs at the pace of its own reports, in milliseconds; null if they say nothing. With
 * one report, the pace is measured from the start of the lease; with more, from the first one, because a lease
 * that goes on from a checkpoint does not start at zero.
 */
export function leftByProgress({ leasedAt, recordCount, progress }: Reporting, now: number): number | null {
  const { records = null, first = null, at = 0 } = progress ?? {}
  if (records === null || first === null) return null
  const from = at > first.at ? first : { records: 0, at: leasedAt }
  const done = records - from.records
  if (done <= 0) return null
  // Until now, not until the last report: a worker that got stuck takes longer and longer.
  return (Math.max(0, recordCount - records) * Math.max(0, now - from.at)) / done
}

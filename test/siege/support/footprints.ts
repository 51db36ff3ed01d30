import type { Footprint } from './besieged.ts'

/** The state of the process at a time since the start. */
export interface Sample extends Footprint {
  readonly second: number
}

const ROWS = 12
const shown = ['residentMb', 'heapMb', 'handles', 'timers', 'connections'] as const
type Shown = (typeof shown)[number]

/**
 * The allowed growth from the second to the last third of a flat run: a share, and an absolute amount for
 * rounding.
 */
const allowed: Readonly<Partial<Record<Shown, { readonly share: number; readonly more: number }>>> = {
  residentMb: { share: 0.1, more: 16 },
  heapMb: { share: 0.1, more: 16 },
  handles: { share: 0, more: 8 },
  timers: { share: 0, more: 8 },
}

export const FLAT_RULE =
  'flat: the median of the last third is at most 10 % and 16 MB above that of the second third; of handles and timers at most 8'

/** Formats some of the samples as Markdown, evenly spaced, including the first and the last. */
export function footprintTable(samples: readonly Sample[]): string {
  const line = (cells: readonly unknown[]) => `| ${cells.join(' | ')} |`
  const columns = ['second', 'RSS (MB)', 'heap (MB)', 'handles', 'timers', 'connections']
  const last = samples.length - 1
  const places = new Set(
    Array.from({ length: Math.min(ROWS, samples.length) }, (_, at) =>
      Math.round((at * last) / Math.max(1, Math.min(ROWS, samples.length) - 1)),
    ),
  )
  const rows = [...places].flatMap((place) => {
    const sample = samples[place]
    return sample === undefined ? [] : [line([sample.second, ...shown.map((name) => sample[name] ?? '–')])]
  })
  return [line(columns), line(columns.map(() => '---:')), ...rows].join('\n')
}

/** What grew although the load did not; empty for a flat run. The first third is for warming up. */
export function growth(samples: readonly Sample[]): string[] {
  const third = Math.floor(samples.length / 3)
  const [second, last] = [samples.slice(third, 2 * third), samples.slice(-third)]
  return shown.flatMap((name) => {
    const rule = allowed[name]
    if (rule === undefined) return []
    const [before, after] = [median(second, name), median(last, name)]
    const most = before * (1 + rule.share) + rule.more
    return after > most ? [`${name} went from ${before} to ${after}`] : []
  })
}

function median(samples: readonly Sample[], name: Shown): number {
  const sorted = samples.map((sample) => sample[name] ?? 0).toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

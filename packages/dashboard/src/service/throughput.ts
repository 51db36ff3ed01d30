import { signal } from '@preact/signals'

const MOST_SECONDS_SHOWN = 180
const FEWEST_SECONDS_SHOWN = 30

export interface DoneSecond {
  readonly second: number
  readonly records: number
}

/** Records that were finished in each second that was watched, oldest first. */
export const doneSeconds = signal<readonly DoneSecond[]>([])

/** The first second that is watched from beginning to end; null while nobody could know what is finished. */
const since = signal<number | null>(null)

/**
 * From now on the page hears of everything and knows what was before it. What comes within the first second may be
 * news of the time before, told late.
 */
export function watchThroughput(): void {
  doneSeconds.value = []
  since.value = Math.floor(Date.now() / 1000) + 2
}

/** Whatever happens from now on is not known, and neither is when it happened. */
export function stopWatching(): void {
  since.value = null
  doneSeconds.value = []
}

export function noteDone(records: number): void {
  if (records <= 0 || since.peek() === null) return
  const second = Math.floor(Date.now() / 1000)
  const series = doneSeconds.peek()
  const last = series.at(-1)
  const grown =
    last?.second === second
      ? [...series.slice(0, -1), { second, records: last.records + records }]
      : [...series, { second, records }]
  doneSeconds.value = grown.filter((entry) => entry.second > second - MOST_SECONDS_SHOWN - 10)
}

/** The pace over the last seconds that have passed completely; null until the page has watched two of them. */
export function recentPace(now: number, seconds = 10): number | null {
  if (since.value === null) return null
  const end = Math.floor(now / 1000)
  const watched = Math.min(seconds, end - since.value)
  if (watched < 2) return null
  const start = end - watched
  const sum = doneSeconds.value
    .filter(({ second }) => second >= start && second < end)
    .reduce((total, { records }) => total + records, 0)
  return sum / watched
}

/** As long as the page has watched, within bounds: a chart that is mostly empty says little. */
export function secondsShown(now: number): number {
  const watched = since.value === null ? 0 : Math.floor(now / 1000) - since.value
  return Math.min(MOST_SECONDS_SHOWN, Math.max(FEWEST_SECONDS_SHOWN, watched))
}

/** One value per second up to now, each averaged with its neighbours: partitions settle in lumps. */
export function smoothSeries(now: number): readonly (number | null)[] {
  const shown = secondsShown(now)
  const end = Math.floor(now / 1000) - 1
  const first = since.value ?? Number.POSITIVE_INFINITY
  const bySecond = new Map(doneSeconds.value.map(({ second, records }) => [second, records]))
  return Array.from({ length: shown }, (_, at) => {
    const second = end - shown + 1 + at
    if (second < first) return null
    let sum = 0
    let count = 0
    for (let near = Math.max(first, second - 3); near <= Math.min(end, second + 1); near += 1) {
      sum += bySecond.get(near) ?? 0
      count += 1
    }
    return count === 0 ? 0 : sum / count
  })
}

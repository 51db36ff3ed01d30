import { signal } from '@preact/signals'

const MOST_SECONDS_SHOWN = 180
const FEWEST_SECONDS_SHOWN = 30

export interface DoneSecond {
  readonly second: number
  readonly records: number
}

/** Records that were finished in each second since the page was opened, oldest first. */
export const doneSeconds = signal<readonly DoneSecond[]>([])

/** The first second that is watched from beginning to end, with everything loaded. */
let since = Math.floor(Date.now() / 1000) + 2

export function noteDone(records: number): void {
  if (records <= 0) return
  const second = Math.floor(Date.now() / 1000)
  const series = doneSeconds.peek()
  const last = series.at(-1)
  const grown =
    last?.second === second
      ? [...series.slice(0, -1), { second, records: last.records + records }]
      : [...series, { second, records }]
  doneSeconds.value = grown.filter((entry) => entry.second > second - MOST_SECONDS_SHOWN - 10)
}

/** The pace over the last seconds that have passed completely; null until the page has watched for a moment. */
export function recentPace(now: number, seconds = 10): number | null {
  const end = Math.floor(now / 1000)
  const watched = Math.min(seconds, end - since)
  if (watched < 2) return null
  const start = end - watched
  const sum = doneSeconds.value
    .filter(({ second }) => second >= start && second < end)
    .reduce((total, { records }) => total + records, 0)
  return sum / watched
}

/** As long as the page has watched, within bounds: a chart that is mostly empty says little. */
export function secondsShown(now: number): number {
  const watched = Math.floor(now / 1000) - since
  return Math.min(MOST_SECONDS_SHOWN, Math.max(FEWEST_SECONDS_SHOWN, watched))
}

/** One value per second up to now, each averaged with its neighbours: partitions settle in lumps. */
export function smoothSeries(now: number): readonly (number | null)[] {
  const shown = secondsShown(now)
  const end = Math.floor(now / 1000) - 1
  const bySecond = new Map(doneSeconds.value.map(({ second, records }) => [second, records]))
  return Array.from({ length: shown }, (_, at) => {
    const second = end - shown + 1 + at
    if (second < since) return null
    let sum = 0
    let count = 0
    for (let near = Math.max(since, second - 3); near <= Math.min(end, second + 1); near += 1) {
      sum += bySecond.get(near) ?? 0
      count += 1
    }
    return count === 0 ? 0 : sum / count
  })
}

/** Begins anew: what happened while nobody watched is not known. */
export function forgetThroughput(): void {
  doneSeconds.value = []
  since = Math.floor(Date.now() / 1000) + 2
}

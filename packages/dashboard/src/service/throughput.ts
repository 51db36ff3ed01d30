import { signal } from '@preact/signals'

const MOST_SECONDS_SHOWN = 180
const FEWEST_SECONDS_SHOWN = 30
/** The current pace is that of the last seconds. */
const PACE_SECONDS = 10

interface DoneSecond {
  readonly second: number
  readonly records: number
}

/**
 * A period of whole seconds in which the page received all events. `last` is inclusive, and null while the
 * period continues.
 */
interface Watch {
  readonly first: number
  readonly last: number | null
}

/** The records that finished in each observed second, oldest first. */
const doneSeconds = signal<readonly DoneSecond[]>([])

/** The observed periods, oldest first. */
const watches = signal<readonly Watch[]>([])

/**
 * Starts an observed period: from now on the page receives all events and knows the state before them. Skips
 * the first second, whose events may report earlier changes.
 */
export function watchThroughput(): void {
  stopWatching()
  watches.value = [...watches.peek(), { first: thisSecond() + 2, last: null }]
}

/** Ends the observed period: later changes are unknown, and so is their time. */
export function stopWatching(): void {
  const last = thisSecond() - 1
  watches.value = watches
    .peek()
    .map((watch) => (watch.last === null ? { ...watch, last } : watch))
    .filter((watch) => watch.first <= (watch.last ?? 0) && (watch.last ?? 0) > last - MOST_SECONDS_SHOWN)
}

export function noteDone(records: number): void {
  if (records <= 0) return
  const second = thisSecond()
  const series = doneSeconds.peek()
  const last = series.at(-1)
  const grown =
    last?.second === second
      ? [...series.slice(0, -1), { second, records: last.records + records }]
      : [...series, { second, records }]
  doneSeconds.value = grown.filter((entry) => entry.second > second - MOST_SECONDS_SHOWN - 10)
}

/** The mean pace over the last complete seconds. Null until two of them were observed. */
export function recentPace(now: number): number | null {
  const watch = watches.value.at(-1)
  if (watch === undefined || watch.last !== null) return null
  const end = Math.floor(now / 1000)
  const watched = Math.min(PACE_SECONDS, end - watch.first)
  if (watched < 2) return null
  const start = end - watched
  const sum = doneSeconds.value
    .filter(({ second }) => second >= start && second < end)
    .reduce((total, { records }) => total + records, 0)
  return sum / watched
}

/**
 * The length of the chart: the time since the first observed second, within limits, so that the chart is
 * never mostly empty.
 */
export function secondsShown(now: number): number {
  const first = watches.value[0]?.first
  const passed = first === undefined ? 0 : Math.floor(now / 1000) - first
  return Math.min(MOST_SECONDS_SHOWN, Math.max(FEWEST_SECONDS_SHOWN, passed))
}

/**
 * One value per second up to now, each averaged with its neighbours, because partitions settle in bursts.
 * Null for seconds that were not observed.
 */
export function smoothSeries(now: number): readonly (number | null)[] {
  const shown = secondsShown(now)
  const end = Math.floor(now / 1000) - 1
  const bySecond = new Map(doneSeconds.value.map(({ second, records }) => [second, records]))
  return Array.from({ length: shown }, (_, at) => {
    const second = end - shown + 1 + at
    const watch = watches.value.find(({ first, last }) => first <= second && second <= (last ?? end))
    if (watch === undefined) return null
    const [from, to] = [Math.max(watch.first, second - 3), Math.min(watch.last ?? end, second + 1)]
    let sum = 0
    for (let near = from; near <= to; near += 1) sum += bySecond.get(near) ?? 0
    return sum / (to - from + 1)
  })
}

const thisSecond = () => Math.floor(Date.now() / 1000)

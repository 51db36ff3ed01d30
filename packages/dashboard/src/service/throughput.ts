import { signal } from '@preact/signals'

const SECONDS_KEPT = 30
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
    .filter((watch) => watch.first <= (watch.last ?? 0) && (watch.last ?? 0) > last - SECONDS_KEPT)
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
  doneSeconds.value = grown.filter((entry) => entry.second > second - SECONDS_KEPT - 10)
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

const thisSecond = () => Math.floor(Date.now() / 1000)

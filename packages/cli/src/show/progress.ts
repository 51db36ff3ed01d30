import type { TaskView } from '@baton/client'
import { percentOf } from '@baton/protocol/core'
import { drawLine, styled } from '../terminal.ts'
import { count, duration } from './numbers.ts'

type Style = Parameters<typeof styled>[0]

interface Segment {
  readonly amount: number
  readonly mark: string
  readonly style: Style
}

/**
 * A bar of `width` characters, divided in proportion to the amounts. An amount above zero is never rounded to
 * nothing: one parked partition among a million must be visible.
 */
export function bar(
  width: number,
  segments: readonly Segment[],
  stream: NodeJS.WriteStream = process.stdout,
): string {
  const total = segments.reduce((sum, { amount }) => sum + amount, 0)
  if (total === 0) return styled('dim', '·'.repeat(width), stream)
  const cells = segments.map(({ amount }) =>
    amount === 0 ? 0 : Math.max(Math.floor((amount / total) * width), 1),
  )
  const spare = width - cells.reduce((sum, cell) => sum + cell, 0)
  // The rounding error goes to the largest segment.
  const largest = segments.reduce(
    (best, { amount }, at) => (amount > (segments[best]?.amount ?? 0) ? at : best),
    0,
  )
  cells[largest] = Math.max((cells[largest] ?? 0) + spare, 0)
  return segments.map(({ mark, style }, at) => styled(style, mark.repeat(cells[at] ?? 0), stream)).join('')
}

export function percent(part: number, whole: number): string {
  return percentOf(part, whole) ?? ''
}

const REDRAW_MILLIS = 100
const BAR_WIDTH = 30

/** A progress bar on stderr. Prints nothing if stderr is not a terminal. */
export class ProgressLine implements Disposable {
  readonly #label: string
  readonly #total: number | undefined
  readonly #stream = process.stderr
  #done = 0
  #drawnAt = 0
  #said = ''

  constructor(label: string, total: number | undefined) {
    this.#label = label
    this.#total = total
  }

  advance(amount: number): void {
    this.#done += amount
    this.#said = ''
    this.#draw(false)
  }

  /** Shows a text next to the bar until the bar moves again. */
  say(text: string): void {
    this.#said = text
    this.#draw(true)
  }

  [Symbol.dispose](): void {
    if (this.#drawnAt > 0) drawLine(this.#stream, '')
  }

  #draw(now: boolean): void {
    if (!this.#stream.isTTY) return
    const time = performance.now()
    if (!now && time - this.#drawnAt < REDRAW_MILLIS) return
    this.#drawnAt = time
    const amount = this.#total === undefined ? count(this.#done) : `${this.#bar(this.#total)}`
    drawLine(this.#stream, `${this.#label} ${amount} ${this.#said}`)
  }

  #bar(total: number): string {
    const segments = [
      { amount: this.#done, mark: '█', style: 'green' },
      { amount: Math.max(total - this.#done, 0), mark: '░', style: 'dim' },
    ] as const
    return `${bar(BAR_WIDTH, segments, this.#stream)} ${percent(this.#done, total)}`
  }
}

/**
 * Shows the progress of several tasks on one line of stderr, redrawn in place. Prints nothing if stderr is
 * not a terminal.
 */
export class WaitLine implements Disposable {
  readonly #isOn: boolean
  readonly #stream = process.stderr
  #isDrawn = false

  constructor(isOn: boolean) {
    this.#isOn = isOn && process.stderr.isTTY
  }

  show(tasks: readonly (TaskView | null)[]): void {
    if (!this.#isOn) return
    drawLine(this.#stream, waitText(tasks, this.#stream))
    this.#isDrawn = true
  }

  end(): void {
    if (this.#isDrawn) drawLine(this.#stream, '')
    this.#isDrawn = false
  }

  [Symbol.dispose](): void {
    this.end()
  }
}

/**
 * The progress, measured in records as for a single task. Tasks that were not called back yet are not
 * counted.
 */
export function waitText(tasks: readonly (TaskView | null)[], stream?: NodeJS.WriteStream): string {
  const known = tasks.filter((task) => task !== null)
  const sum = (of: (task: TaskView) => number) => known.reduce((total, task) => total + of(task), 0)
  const done = sum(({ records }) => records.done)
  const parked = sum(({ records }) => records.parked)
  const total = sum(({ records }) => records.total)
  const segments = [
    { amount: done, mark: '█', style: 'green' },
    { amount: parked, mark: '▒', style: 'red' },
    { amount: total - done - parked, mark: '░', style: 'dim' },
  ] as const
  const left = known.map(({ etaSeconds }) => etaSeconds).filter((seconds) => seconds !== null)
  const ended = known.filter(({ state }) => state !== 'open' && state !== 'paused').length
  return [
    bar(BAR_WIDTH, segments, stream),
    percent(done, total),
    tasks.length > 1 ? `${ended} of ${tasks.length} tasks` : (known[0]?.state ?? 'not called back yet'),
    ...(left.length > 0 ? [`${duration(Math.max(...left))} left`] : []),
  ]
    .filter((part) => part !== '')
    .join('  ')
}

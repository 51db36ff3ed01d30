import type { TaskView } from '@baton/client'
import { bar, percent } from './bar.ts'
import { duration } from './numbers.ts'

const BAR_WIDTH = 30

/** How far some tasks are together, as one line on stderr that is drawn again; nothing where that is no terminal. */
export class WaitLine implements Disposable {
  readonly #isOn: boolean
  readonly #stream = process.stderr
  #isDrawn = false

  constructor(isOn: boolean) {
    this.#isOn = isOn && process.stderr.isTTY
  }

  show(tasks: readonly (TaskView | null)[]): void {
    if (!this.#isOn) return
    this.#stream.write(`\r${waitText(tasks, this.#stream)}\u001b[K`)
    this.#isDrawn = true
  }

  end(): void {
    if (this.#isDrawn) this.#stream.write('\r\u001b[K')
    this.#isDrawn = false
  }

  [Symbol.dispose](): void {
    this.end()
  }
}

/** Counted in records, as the tasks are; those that were not called back yet count for nothing. */
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

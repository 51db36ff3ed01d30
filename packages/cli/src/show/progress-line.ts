import { bar, percent } from './bar.ts'
import { count } from './numbers.ts'

const REDRAW_MILLIS = 100
const BAR_WIDTH = 30

/** A bar on stderr while something runs; nothing at all where stderr is no terminal. */
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

  /** Shown beside the bar until it moves again. */
  say(text: string): void {
    this.#said = text
    this.#draw(true)
  }

  [Symbol.dispose](): void {
    if (this.#drawnAt > 0) this.#stream.write('\r\u001b[K')
  }

  #draw(now: boolean): void {
    if (!this.#stream.isTTY) return
    const time = performance.now()
    if (!now && time - this.#drawnAt < REDRAW_MILLIS) return
    this.#drawnAt = time
    const amount = this.#total === undefined ? count(this.#done) : `${this.#bar(this.#total)}`
    this.#stream.write(`\r${this.#label} ${amount} ${this.#said}\u001b[K`)
  }

  #bar(total: number): string {
    const segments = [
      { amount: this.#done, mark: '█', style: 'green' },
      { amount: Math.max(total - this.#done, 0), mark: '░', style: 'dim' },
    ] as const
    return `${bar(BAR_WIDTH, segments, this.#stream)} ${percent(this.#done, total)}`
  }
}

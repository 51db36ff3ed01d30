import { heightOf, widthOf } from '../terminal.ts'
import { fitting } from './fitting.ts'

const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'

/** Lines of a terminal that are drawn again in place; the last state stays when it is over. */
export class Redrawn {
  readonly #stream: NodeJS.WriteStream
  #height = 0

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    stream.write(HIDE_CURSOR)
  }

  draw(text: string): void {
    const width = widthOf(this.#stream)
    const rows = heightOf(this.#stream)
    const lines = text.split('\n').slice(0, Math.max(rows - 1, 1))
    const back = this.#height > 0 ? `\u001b[${this.#height}A\r` : '\r'
    // Each line clears what stood behind it, and the last one what stood below: nothing flickers.
    // A line that wraps would be two, and the way back up would be miscounted.
    const drawn = lines.map((line) => `${fitting(line, width)}\u001b[K\n`).join('')
    this.#stream.write(`${back}${drawn}\u001b[J`)
    this.#height = lines.length
  }

  end(): void {
    this.#stream.write(SHOW_CURSOR)
  }
}

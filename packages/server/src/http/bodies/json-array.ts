import { isUtf8 } from 'node:buffer'
import { parseExactJson } from '@baton/protocol'
import { BYTE_ORDER_MARK, NotJson, notJson } from './json-bytes.ts'

/** Stand-ins for the elements before and after a piece. Each piece but the first begins with a comma. */
const [BEFORE, AFTER] = ['[0', ',0]']

/** A large JSON array, parsed piece by piece: at once it would block the loop and take a lot of memory. */
export class JsonArrayText {
  readonly #bytes: Buffer
  readonly #cuts: readonly number[]

  /** `cuts` are positions of commas between the elements. */
  constructor(bytes: Buffer, cuts: readonly number[]) {
    this.#bytes = bytes
    this.#cuts = cuts
  }

  /** False: the text is an object. */
  get isArray(): boolean {
    return this.#text(0, this.#cuts[0]).trimStart().startsWith('[')
  }

  /** Parses the elements in order, a few at a time. Throws on an error, after the elements before it. */
  *pieces(): Generator<readonly unknown[]> {
    if (!isUtf8(this.#bytes)) throw new NotJson('the body is not valid UTF-8')
    let start = 0
    for (const cut of this.#cuts) {
      yield this.#parse(start, cut)
      start = cut
    }
    yield this.#parse(start, undefined)
  }

  /** Stand-ins make the errors those of the whole text. */
  #parse(start: number, end: number | undefined): readonly unknown[] {
    const isFirst = start === 0
    const text = (isFirst ? '' : BEFORE) + this.#text(start, end) + (end === undefined ? '' : AFTER)
    try {
      const elements = parseExactJson(text) as readonly unknown[]
      return elements.slice(isFirst ? 0 : 1, end === undefined ? undefined : -1)
    } catch (error) {
      throw notJson(error, text, isFirst ? 0 : this.#text(0, start).length - BEFORE.length)
    }
  }

  #text(start: number, end: number | undefined): string {
    const text = this.#bytes.toString('utf8', start, end)
    return start === 0 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
  }
}

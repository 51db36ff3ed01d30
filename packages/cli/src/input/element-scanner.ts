/** One element of the input: its text, and the line on which it begins. */
export interface Element {
  readonly text: string
  readonly line: number
}

/** The input is neither a JSON array nor a sequence of JSON values. */
export class ScanError extends Error {
  override name = 'ScanError'
  readonly line: number

  constructor(line: number, detail: string) {
    super(detail)
    this.line = line
  }
}

const code = (character: string) => character.charCodeAt(0)
const NEWLINE = code('\n')
const QUOTE = code('"')
const BACKSLASH = code('\\')
const COMMA = code(',')
const spaces = new Set([code(' '), code('\t'), code('\r'), NEWLINE])
const openers = new Set([code('{'), code('[')])
const closers = new Set([code('}'), code(']')])
const OPEN_ARRAY = code('[')
const CLOSE_ARRAY = code(']')

/**
 * Splits JSON text into elements as it arrives, and buffers at most one element. The elements are those of an
 * array or, if the text does not begin with a bracket, consecutive values (NDJSON). The scanner does not
 * validate elements; the parser does.
 */
export class ElementScanner {
  #expecting: 'first' | 'element' | 'separator' | 'end' = 'first'
  #isArray = false
  /** Whether the array may end here: not after a comma. */
  #mayClose = false
  #line = 1
  /** The text of the current element that has arrived so far. */
  #rest = ''
  #begun = -1
  #begunLine = 1
  #depth = 0
  #inText = false
  #escaped = false

  push(chunk: string): Element[] {
    const found: Element[] = []
    const text = this.#rest + chunk
    const finish = (end: number) => {
      found.push({ text: text.slice(this.#begun, end), line: this.#begunLine })
      this.#begun = -1
      this.#expecting = this.#isArray ? 'separator' : 'element'
    }
    for (let at = this.#rest.length; at < text.length; at += 1) {
      const character = text.charCodeAt(at)
      if (this.#begun === -1) this.#between(character, at)
      else if (this.#endsWith(character)) finish(at + 1)
      else if (this.#depth === 0 && !this.#inText && isBoundary(character)) {
        finish(at)
        this.#between(character, at)
      }
      if (character === NEWLINE) this.#line += 1
    }
    this.#rest = this.#begun === -1 ? '' : text.slice(this.#begun)
    if (this.#begun !== -1) this.#begun = 0
    return found
  }

  /** Returns the last element at the end of the input. Throws if a value or the array is incomplete. */
  end(): Element[] {
    // A number or a literal has no closing character, so a space ends it.
    const found = this.#begun !== -1 && this.#depth === 0 && !this.#inText ? this.push(' ') : []
    if (this.#begun !== -1) throw new ScanError(this.#begunLine, 'the input ends within this value')
    if (this.#isArray && this.#expecting !== 'end') throw new ScanError(this.#line, 'the array is not closed')
    return found
  }

  #between(character: number, at: number): void {
    if (spaces.has(character)) return
    if (this.#expecting === 'first' && character === OPEN_ARRAY) {
      this.#isArray = true
      this.#mayClose = true
      this.#expecting = 'element'
    } else if (this.#closesArray(character)) this.#expecting = 'end'
    else if (this.#expecting === 'separator' && character === COMMA) {
      this.#mayClose = false
      this.#expecting = 'element'
    } else if (this.#expecting === 'separator') throw this.#unexpected(character, 'a comma is missing before')
    else if (this.#expecting === 'end') throw this.#unexpected(character, 'after the array there is')
    else if (character === COMMA || closers.has(character))
      throw this.#unexpected(character, 'a value is missing before')
    else this.#begin(character, at)
  }

  #closesArray(character: number): boolean {
    if (!this.#isArray || character !== CLOSE_ARRAY) return false
    return this.#expecting === 'separator' || (this.#expecting === 'element' && this.#mayClose)
  }

  #begin(character: number, at: number): void {
    this.#begun = at
    this.#begunLine = this.#line
    this.#depth = openers.has(character) ? 1 : 0
    this.#inText = character === QUOTE
    this.#escaped = false
  }

  /** Processes a character inside an element. Returns true if the element ends with it. */
  #endsWith(character: number): boolean {
    if (this.#inText) {
      if (this.#escaped) this.#escaped = false
      else if (character === BACKSLASH) this.#escaped = true
      else if (character === QUOTE) {
        this.#inText = false
        return this.#depth === 0
      }
      return false
    }
    if (character === QUOTE) this.#inText = true
    else if (openers.has(character)) this.#depth += 1
    else if (closers.has(character) && this.#depth > 0) {
      this.#depth -= 1
      return this.#depth === 0
    }
    return false
  }

  #unexpected(character: number, what: string): ScanError {
    return new ScanError(this.#line, `${what} ${JSON.stringify(String.fromCharCode(character))}`)
  }
}

/** Whether the character ends a number or a literal. */
function isBoundary(character: number): boolean {
  return spaces.has(character) || character === COMMA || closers.has(character)
}

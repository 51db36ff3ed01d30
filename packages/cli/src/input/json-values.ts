import { createReadStream } from 'node:fs'
import { parseExactJson } from '@baton/protocol/core'

/** A file or stdin has invalid content. Each line names the place of a fault. */
export class InputError extends Error {
  override name = 'InputError'
  readonly lines: readonly string[]
  /** What to do about it, if the lines do not say. */
  readonly hint: string | undefined

  constructor(lines: readonly string[], hint?: string) {
    super(lines[0] ?? 'the input is invalid')
    this.lines = lines
    this.hint = hint
  }
}

const LONGEST = 1000

/** The beginning of the input, to distinguish JSON with a fault from other formats. */
class Opening {
  #text = ''

  add(chunk: string): void {
    if (this.#text.length >= LONGEST || this.#text.includes('\n')) return
    this.#text = `${this.#text}${chunk.slice(0, LONGEST)}`.trimStart()
  }

  /** A message about the whole input. Undefined if it begins like JSON; the fault itself then says more. */
  get complaint(): string | undefined {
    if (this.#text === '' || /^[[{]/.test(this.#text)) return undefined
    const [line = ''] = this.#text.split('\n', 1)
    const what = line.includes(',') ? 'this looks like CSV, not JSON' : 'this is not JSON'
    return `${what}: expected JSON objects, one per line, or a JSON array of objects`
  }
}

/** A parsed value and its line. */
export interface ReadValue {
  readonly value: unknown
  readonly line: number
}

/** Converts a value from the source to a descriptor, for sources with more fields than needed. */
export type Adapt = (value: unknown) => unknown

export interface Source {
  /** The name of the source in messages. */
  readonly name: string
  readonly chunks: () => AsyncIterable<Uint8Array>
  readonly adapt?: Adapt | undefined
}

export function fileSource(path: string, name = path): Source {
  return { name, chunks: () => createReadStream(path) }
}

/**
 * Yields the values of a JSON array or of NDJSON as they arrive. The input must be UTF-8. `onFault` is called
 * for elements that are not JSON.
 */
export async function* readValues(
  { name, chunks, adapt = asItIs }: Source,
  onBytes: (bytes: number) => void = () => {},
  onFault: (fault: string) => void = (fault) => {
    throw new InputError([fault])
  },
): AsyncGenerator<ReadValue, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const scanner = new ElementScanner()
  const opening = new Opening()
  function* parse({ text, line }: Element): Generator<ReadValue> {
    let value: unknown
    try {
      value = parseExactJson(text)
    } catch (error) {
      const { complaint } = opening
      // Report input that is not JSON at all once, not line by line.
      if (complaint !== undefined) throw new InputError([`${name}:${line}: ${complaint}`])
      onFault(`${name}:${line}: this is not JSON: ${(error as Error).message}`)
      return
    }
    yield { value: adapt(value), line }
  }
  const decode = (bytes?: Uint8Array) => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      throw new InputError([`${name}: this is not UTF-8`])
    }
  }
  const scan = (step: () => Element[]) => {
    try {
      return step()
    } catch (error) {
      if (!(error instanceof ScanError)) throw error
      throw new InputError([`${name}:${error.line}: ${opening.complaint ?? error.message}`])
    }
  }
  for await (const bytes of chunks()) {
    onBytes(bytes.byteLength)
    const text = decode(bytes)
    opening.add(text)
    for (const element of scan(() => scanner.push(text))) yield* parse(element)
  }
  const last = decode()
  for (const element of scan(() => [...scanner.push(last), ...scanner.end()])) yield* parse(element)
}

const asItIs: Adapt = (value) => value

/** One element of the input: its text, and the line on which it begins. */
interface Element {
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
    else if (this.#expecting === 'end') throw this.#unexpected(character, 'unexpected data after the array:')
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

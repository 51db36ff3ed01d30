import { createReadStream } from 'node:fs'
import { parseExactJson } from '@baton/protocol/core'
import { type Element, ElementScanner, ScanError } from './element-scanner.ts'

/** Something in a file or on stdin is not what it should be; each line names its place. */
export class InputError extends Error {
  override name = 'InputError'
  readonly lines: readonly string[]
  /** What to do about it, where the lines do not say. */
  readonly hint: string | undefined

  constructor(lines: readonly string[], hint?: string) {
    super(lines[0] ?? 'the input is not what it should be')
    this.lines = lines
    this.hint = hint
  }
}

const LONGEST = 1000

/** How the input begins, which tells something else from JSON with a fault in it. */
class Opening {
  #text = ''

  add(chunk: string): void {
    if (this.#text.length >= LONGEST || this.#text.includes('\n')) return
    this.#text = `${this.#text}${chunk.slice(0, LONGEST)}`.trimStart()
  }

  /** What to say of the whole input; undefined where it begins as it should, and the fault itself says more. */
  get complaint(): string | undefined {
    if (this.#text === '' || /^[[{]/.test(this.#text)) return undefined
    const [line = ''] = this.#text.split('\n', 1)
    const what = line.includes(',') ? 'this looks like CSV, and is not JSON' : 'this is not JSON'
    return `${what}: expected are JSON objects, one per line, or an array of them`
  }
}

/** A value that was read, and where it stands. */
export interface ReadValue {
  readonly value: unknown
  readonly line: number
}

/** What a value is taken for, where the source holds more than is wanted of it. */
export type Adapt = (value: unknown) => unknown

export interface Source {
  /** How the source is called in what is told. */
  readonly name: string
  readonly chunks: () => AsyncIterable<Uint8Array>
  readonly adapt?: Adapt | undefined
}

export function fileSource(path: string, name = path): Source {
  return { name, chunks: () => createReadStream(path) }
}

/** The values of a JSON array or of NDJSON, read as they arrive, in UTF-8 and nothing else. Elements that are not JSON are told to `onFault`. */
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
      // What is no JSON at all would be told line by line.
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

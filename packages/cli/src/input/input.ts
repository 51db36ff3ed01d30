import { createReadStream } from 'node:fs'
import { parseExactJson } from '@baton/protocol/core'
import { type Element, ElementScanner, ScanError } from './element-scanner.ts'

/** A file or stdin has invalid content. Each line names the place of a fault. */
export class InputError extends Error {
  override name = 'InputError'
  readonly lines: readonly string[]
  /** What to do about it, if the lines do not say. */
  readonly hint: string | undefined

  constructor(lines: readonly string[], hint?: string) {
    super(lines[0] ?? 'the input is not what it should be')
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
    const what = line.includes(',') ? 'this looks like CSV, and is not JSON' : 'this is not JSON'
    return `${what}: expected are JSON objects, one per line, or an array of them`
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

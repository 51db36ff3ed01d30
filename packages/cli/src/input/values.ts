import { createReadStream } from 'node:fs'
import { type Element, ElementScanner, ScanError } from './element-scanner.ts'
import { InputError } from './input-error.ts'
import { Opening } from './opening.ts'

/** A value that was read, and where it stands. */
export interface ReadValue {
  readonly value: unknown
  readonly line: number
}

export interface Source {
  /** How the source is called in what is told. */
  readonly name: string
  readonly chunks: () => AsyncIterable<Uint8Array>
}

export function fileSource(path: string, name = path): Source {
  return { name, chunks: () => createReadStream(path) }
}

/** The values of a JSON array or of NDJSON, read as they arrive, in UTF-8 and nothing else. */
export async function* readValues(
  { name, chunks }: Source,
  onBytes: (bytes: number) => void = () => {},
): AsyncGenerator<ReadValue, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const scanner = new ElementScanner()
  const opening = new Opening()
  const parse = ({ text, line }: Element): ReadValue => {
    try {
      return { value: JSON.parse(text), line }
    } catch (error) {
      const complaint = opening.complaint ?? `this is not JSON: ${(error as Error).message}`
      throw new InputError([`${name}:${line}: ${complaint}`])
    }
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
    for (const element of scan(() => scanner.push(text))) yield parse(element)
  }
  const last = decode()
  for (const element of scan(() => [...scanner.push(last), ...scanner.end()])) yield parse(element)
}

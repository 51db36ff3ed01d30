import { CallBackCheck, namingPositions, type Violation } from '@baton/client'
import { MAX_LISTED_VIOLATIONS, quoted, type UnknownFields } from '@baton/protocol/core'
import { InputError, type ReadValue, readValues, type Source } from './input.ts'

type LineOf = (position: number) => number | undefined

/** File and line, which editors can jump to; the file alone where a fault is about the whole. */
export function placeOf(name: string, pointer: string, lineOf: LineOf): string {
  const position = positionIn(pointer)
  const line = position === undefined ? undefined : lineOf(position)
  return line === undefined ? name : `${name}:${line}`
}

/** Which element it is, counted from 1, where several stand on one line; otherwise the line says it. */
function elementOf(pointer: string, lineOf: LineOf): string {
  const position = positionIn(pointer)
  return position === undefined || !sharesItsLine(position, lineOf) ? '' : `: element ${position + 1}`
}

/** What a fault says about other descriptors, with their lines or numbers instead of their positions. */
export function inLines(detail: string, lineOf: LineOf): string {
  return namingPositions(detail, (position) => {
    const line = lineOf(position)
    if (line === undefined) return `/${position}`
    return sharesItsLine(position, lineOf) ? `element ${position + 1}` : `line ${line}`
  })
}

function positionIn(pointer: string): number | undefined {
  const position = /^\/(\d+)/.exec(pointer)?.[1]
  return position === undefined ? undefined : Number(position)
}

function sharesItsLine(position: number, lineOf: LineOf): boolean {
  const line = lineOf(position)
  return line !== undefined && (lineOf(position - 1) === line || lineOf(position + 1) === line)
}

/** The descriptor at a position, as it was read. */
type DescriptorAt = (position: number) => unknown

/**
 * Asks whether the service has another name for the table field, where a descriptor lacks the one that was expected and
 * has one that nobody knows, with what may be a table. Each of the two faults alone leads astray: to leave the field
 * out, or to rename it.
 */
export function tableFieldHint(
  errors: readonly Violation[],
  expected: string,
  descriptorAt: DescriptorAt,
): string | undefined {
  const name = errors
    .map(({ pointer }) => namedAt(pointer, errors, expected, descriptorAt))
    .find((found) => found)
  if (name === undefined) return undefined
  return `Does the service call the table field ${quoted(name)}? Then say so by --table-field or BATON_TABLE_FIELD.`
}

function namedAt(
  pointer: string,
  errors: readonly Violation[],
  expected: string,
  descriptorAt: DescriptorAt,
): string | undefined {
  const [, position, missing = ''] = fieldPointer.exec(pointer) ?? []
  const about = errors.filter((error) => error.pointer.startsWith(`/${position}/`))
  if (!about.some((error) => error.pointer === pointer && error.detail === `${missing} is missing`)) {
    return undefined
  }
  const unknown = about
    .filter(({ detail }) => detail.includes(' is not a field of the contract; '))
    .filter(({ detail }) => missing !== expected || !detail.endsWith(`; did you mean ${expected}?`))
    .map((error) => unescaped(fieldPointer.exec(error.pointer)?.[2] ?? ''))
  // Found here, the file knows the name that the command does not; found by the service, it is the other way round.
  if (missing === expected) return unknown.find((name) => holdsTable(descriptorAt(Number(position)), name))
  return unknown.includes(expected) ? missing : undefined
}

/** As `<schema>.<table>`: any other field that nobody knows is simply one too many. */
function holdsTable(descriptor: unknown, field: string): boolean {
  const value = (descriptor as Readonly<Record<string, unknown>> | undefined)?.[field]
  return typeof value === 'string' && /^[^.\s]+\.[^.\s]+$/.test(value)
}

const fieldPointer = /^\/(\d+)\/([^/]+)$/

const unescaped = (token: string) => token.replaceAll('~1', '/').replaceAll('~0', '~')

const DESCRIPTORS_AT_ONCE = 10_000

interface CheckOptions {
  readonly tableField: string
  readonly unknownFields: UnknownFields
  readonly onBytes: (bytes: number) => void
}

/** Reads a whole source against the contract, however large, and names all its faults; answers how many descriptors it holds. */
export async function checkSource(source: Source, options: CheckOptions): Promise<number> {
  const check = new CallBackCheck(options)
  const faults = new Faults()
  let piece: ReadValue[] = []
  let count = 0
  const readAt = (position: number) => piece[position - count]
  const lineOf = (position: number) => readAt(position)?.line
  const take = async () => {
    const { errors = [], errorsOmitted = 0 } = (await check.take(piece.map(({ value }) => value))) ?? {}
    for (const { pointer, detail } of errors) {
      const place = `${placeOf(source.name, pointer, lineOf)}${elementOf(pointer, lineOf)}`
      faults.add(`${place}: ${inLines(detail, lineOf)}`)
    }
    faults.omit(errorsOmitted)
    faults.hint ??= tableFieldHint(errors, options.tableField, (position) => readAt(position)?.value)
    count += piece.length
    piece = []
  }
  try {
    for await (const read of readValues(source, options.onBytes, (fault) => faults.add(fault))) {
      piece.push(read)
      if (piece.length === DESCRIPTORS_AT_ONCE) await take()
    }
  } catch (error) {
    // What was found before it cannot be read any further is worth knowing, too.
    if (!(error instanceof InputError) || faults.isEmpty) throw error
    for (const line of error.lines) faults.add(line)
    throw faults.error()
  }
  if (piece.length > 0 || (count === 0 && faults.isEmpty)) await take()
  if (!faults.isEmpty) throw faults.error()
  return count
}

/** All that is wrong with a source: the first hundred in words. */
class Faults {
  readonly #lines: string[] = []
  #omitted = 0
  hint: string | undefined

  get isEmpty(): boolean {
    return this.#lines.length === 0
  }

  add(line: string): void {
    if (this.#lines.length < MAX_LISTED_VIOLATIONS) this.#lines.push(line)
    else this.#omitted += 1
  }

  omit(count: number): void {
    this.#omitted += count
  }

  error(): InputError {
    const omitted = this.#omitted > 0 ? [`… and ${this.#omitted} more`] : []
    return new InputError([...this.#lines, ...omitted], this.hint)
  }
}

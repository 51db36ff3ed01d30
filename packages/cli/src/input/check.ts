import { CallBackCheck, namingPositions, type Violation } from '@baton/client'
import { MAX_LISTED_VIOLATIONS, quoted, type UnknownFields } from '@baton/protocol/core'
import { InputError, type ReadValue, readValues, type Source } from './json-values.ts'

type LineOf = (position: number) => number | undefined

/** File and line, in the form that editors can jump to. Only the file if a fault concerns all of it. */
export function placeOf(name: string, pointer: string, lineOf: LineOf): string {
  const position = positionIn(pointer)
  const line = position === undefined ? undefined : lineOf(position)
  return line === undefined ? name : `${name}:${line}`
}

/**
 * The number of the element, counted from 1, if several elements are on one line. Otherwise the line is
 * enough.
 */
function elementOf(pointer: string, lineOf: LineOf): string {
  const position = positionIn(pointer)
  return position === undefined || !sharesItsLine(position, lineOf) ? '' : `: element ${position + 1}`
}

/** Replaces positions of other descriptors in a fault with their lines or numbers. */
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
 * Suggests that the service may have another name for the table field. Applies if a descriptor lacks the
 * expected field, and has an unknown field whose value may be a table name. Each of the two faults alone
 * would be misleading: it suggests to remove the field, or to rename it.
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
  return `If the service uses the name ${quoted(name)} for the table field, set --table-field or BATON_TABLE_FIELD.`
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
  // If the client found the fault, the file has the name that the command lacks. If the service found it, the
  // service has it.
  if (missing === expected) return unknown.find((name) => holdsTable(descriptorAt(Number(position)), name))
  return unknown.includes(expected) ? missing : undefined
}

/** Whether the value has the form `<schema>.<table>`. Any other unknown field is just an extra field. */
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

/**
 * Checks a whole source of any size against the contract, and reports all faults. Returns the number of
 * descriptors.
 */
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
    // If the input becomes unreadable, also report the faults that were found before.
    if (!(error instanceof InputError) || faults.isEmpty) throw error
    for (const line of error.lines) faults.add(line)
    throw faults.error()
  }
  if (piece.length > 0 || (count === 0 && faults.isEmpty)) await take()
  if (!faults.isEmpty) throw faults.error()
  return count
}

/** Collects the faults of a source: lists the first hundred, counts the rest. */
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

import { CallBackCheck } from '@baton/client'
import { MAX_LISTED_VIOLATIONS, type UnknownFields } from '@baton/protocol/without-schemas'
import { InputError } from './input-error.ts'
import { elementOf, inLines, placeOf } from './place.ts'
import { tableFieldHint } from './table-field-hint.ts'
import { type ReadValue, readValues, type Source } from './values.ts'

const DESCRIPTORS_AT_ONCE = 10_000

export interface CheckOptions {
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

import { CallBackCheck } from '@baton/client'
import { InputError } from './input-error.ts'
import { inLines, placeOf } from './place.ts'
import { tableFieldHint } from './table-field-hint.ts'
import { type ReadValue, readValues, type Source } from './values.ts'

const DESCRIPTORS_AT_ONCE = 10_000

export interface CheckOptions {
  readonly tableField: string
  readonly unknownFields: 'refuse' | 'ignore'
  readonly onBytes: (bytes: number) => void
}

/** Reads a whole source against the contract, however large; answers how many descriptors it holds. */
export async function checkSource(source: Source, options: CheckOptions): Promise<number> {
  const check = new CallBackCheck(options)
  let piece: ReadValue[] = []
  let count = 0
  const readAt = (position: number) => piece[position - count]
  const lineOf = (position: number) => readAt(position)?.line
  const take = async () => {
    const found = await check.take(piece.map(({ value }) => value))
    if (found !== undefined) {
      const { errors = [], errorsOmitted = 0 } = found
      const lines = errors.map(
        ({ pointer, detail }) => `${placeOf(source.name, pointer, lineOf)}: ${inLines(detail, lineOf)}`,
      )
      const omitted = errorsOmitted > 0 ? [`… and ${errorsOmitted} more`] : []
      const hint = tableFieldHint(errors, options.tableField, (position) => readAt(position)?.value)
      throw new InputError([...lines, ...omitted], hint)
    }
    count += piece.length
    piece = []
  }
  for await (const read of readValues(source, options.onBytes)) {
    piece.push(read)
    if (piece.length === DESCRIPTORS_AT_ONCE) await take()
  }
  if (piece.length > 0 || count === 0) await take()
  return count
}

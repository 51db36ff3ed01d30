import { CallBackCheck } from '@baton/client'
import { InputError } from './input-error.ts'
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
  const take = () => {
    const found = check.take(piece.map(({ value }) => value))
    if (found !== undefined) {
      const { errors = [], errorsOmitted = 0 } = found
      throw new InputError([
        ...errors.map(({ pointer, detail }) => `${placeOf(source, piece, pointer, count)}: ${detail}`),
        ...(errorsOmitted > 0 ? [`… and ${errorsOmitted} more`] : []),
      ])
    }
    count += piece.length
    piece = []
  }
  for await (const read of readValues(source, options.onBytes)) {
    piece.push(read)
    if (piece.length === DESCRIPTORS_AT_ONCE) take()
  }
  if (piece.length > 0 || count === 0) take()
  return count
}

/** File and line, which editors can jump to. */
function placeOf({ name }: Source, piece: readonly ReadValue[], pointer: string, offset: number): string {
  const position = /^\/(\d+)/.exec(pointer)?.[1]
  const line = position === undefined ? undefined : piece[Number(position) - offset]?.line
  return line === undefined ? name : `${name}:${line}`
}

import { namingPositions } from '@baton/client'

type LineOf = (position: number) => number | undefined

/** File and line, which editors can jump to; the file alone where a fault is about the whole. */
export function placeOf(name: string, pointer: string, lineOf: LineOf): string {
  const position = /^\/(\d+)/.exec(pointer)?.[1]
  const line = position === undefined ? undefined : lineOf(Number(position))
  return line === undefined ? name : `${name}:${line}`
}

/** What a fault says about other descriptors, with their lines instead of their positions. */
export function inLines(detail: string, lineOf: LineOf): string {
  return namingPositions(detail, (position) => {
    const line = lineOf(position)
    return line === undefined ? `/${position}` : `line ${line}`
  })
}

import { namingPositions } from '@baton/client'

type LineOf = (position: number) => number | undefined

/** File and line, which editors can jump to; the file alone where a fault is about the whole. */
export function placeOf(name: string, pointer: string, lineOf: LineOf): string {
  const position = positionIn(pointer)
  const line = position === undefined ? undefined : lineOf(position)
  return line === undefined ? name : `${name}:${line}`
}

/** Which element it is, counted from 1, where several stand on one line; otherwise the line says it. */
export function elementOf(pointer: string, lineOf: LineOf): string {
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

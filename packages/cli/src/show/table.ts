import stringWidth from 'string-width'
import { styled, widthOf } from '../terminal.ts'

/** What a terminal draws as one character: an emoji may be several code points. */
const graphemes = new Intl.Segmenter()
const charactersOf = (text: string) => Array.from(graphemes.segment(text), ({ segment }) => segment)

/** A line that is cut where the terminal ends. */
export function fitting(line: string, width: number): string {
  if (stringWidth(line) <= width) return line
  let shown = 0
  let kept = ''
  // Sequences that style take no room.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how they begin
  for (const part of line.split(/(\u001b\[[0-9;]*m)/)) {
    if (part.startsWith('\u001b')) kept += part
    else {
      const fits = taken(charactersOf(part), width - 1 - shown)
      shown = fits.join('') === part ? shown + stringWidth(part) : width - 1
      kept += fits.join('')
    }
  }
  return `${kept}…\u001b[0m`
}

/** A text without styles, cut at its end. */
export function beginning(text: string, width: number): string {
  return stringWidth(text) <= width ? text : `${taken(charactersOf(text), width - 1).join('')}…`
}

/** A text without styles, cut in its middle: names differ at their ends, and what they have in common goes first. */
export function ends(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  const characters = charactersOf(text)
  const front = Math.floor((width - 1) / 2)
  const back = taken(characters.toReversed(), width - 1 - front).reverse()
  return `${taken(characters, front).join('')}…${back.join('')}`
}

/** As many of the first as there is room for. */
function taken(characters: readonly string[], width: number): string[] {
  let used = 0
  const end = characters.findIndex((character) => {
    used += stringWidth(character)
    return used > width
  })
  return characters.slice(0, end === -1 ? characters.length : end)
}

export interface Column<Row> {
  readonly title: string
  /** What stands in it; of a picture and of a text that can be shortened, as wide as it may be. */
  readonly of: (row: Row, width: number) => string
  readonly align?: 'right'
  /** Of a picture of what others say in numbers: how wide it is where there is room, and at the least. */
  readonly picture?: { readonly most: number; readonly least: number }
  /** Of a text that can be shortened: what it keeps at the least. */
  readonly text?: { readonly least: number }
}

const GAP = '  '
const SHORTEST_NAME = 24

/** As wide as the terminal, or as it takes where there is none. */
export const tableWidth = () => (process.stdout.isTTY ? widthOf(process.stdout) : Number.POSITIVE_INFINITY)

/**
 * Columns as wide as their widest entry. On a terminal pictures make room for texts, and both for numbers; then it is
 * cut where it ends.
 */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width = tableWidth(),
): string {
  const rooms = columns.map(({ picture }) => picture?.most ?? Number.POSITIVE_INFINITY)
  const whole = cellsOf(rows, columns, rooms)
  const widths = widthsOf(whole)
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1)) - width
  if (excess <= 0) return linesOf(whole, columns).join('\n')
  const shrink = (at: number, least: number) => {
    const given = Math.min(Math.max((widths[at] ?? 0) - least, 0), excess)
    if (given > 0) rooms[at] = (widths[at] ?? 0) - given
    excess -= given
  }
  for (const [at, { picture }] of columns.entries()) if (picture !== undefined) shrink(at, picture.least)
  // The last first: rows begin with what they are about.
  for (const [at, { text }] of [...columns.entries()].reverse())
    if (text !== undefined) shrink(at, text.least)
  const isPicture = ({ picture }: Column<Row>) => picture !== undefined
  if (excess > 0 && columns.some(isPicture)) {
    // One that is too small to show anything is left out.
    return table(
      rows,
      columns.filter((column) => !isPicture(column)),
      width,
    )
  }
  return linesOf(cellsOf(rows, columns, rooms), columns)
    .map((line) => fitting(line, width))
    .join('\n')
}

function cellsOf<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  rooms: readonly number[],
): string[][] {
  return [
    columns.map(({ title }) => styled('dim', title)),
    ...rows.map((row) => columns.map(({ of }, at) => of(row, rooms[at] ?? 0))),
  ]
}

function widthsOf(lines: readonly (readonly string[])[]): number[] {
  const [titles = []] = lines
  return titles.map((_, at) => Math.max(...lines.map((line) => stringWidth(line[at] ?? ''))))
}

function linesOf<Row>(lines: readonly (readonly string[])[], columns: readonly Column<Row>[]): string[] {
  const widths = widthsOf(lines)
  return lines.map((line) =>
    line
      .map((cell, at) => padded(cell, widths[at] ?? 0, columns[at]?.align))
      .join(GAP)
      .trimEnd(),
  )
}

function padded(cell: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(width - stringWidth(cell), 0))
  return align === 'right' ? space + cell : cell + space
}

/** Control characters in names must not reach the terminal. */
export function shown(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '·')
}

/** A column of names: a long one leaves room for what is said of it, and for the others. */
export function nameColumn<Row>(title: string, of: (row: Row) => string): Column<Row> {
  return { title, of: (row, width) => ends(shown(of(row)), width), text: { least: SHORTEST_NAME } }
}

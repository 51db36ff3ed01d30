import stringWidth from 'fast-string-width'
import { shown, styled, widthOf } from '../terminal.ts'

/** What a terminal draws as one character: an emoji may be several code points. */
const graphemes = new Intl.Segmenter()
const charactersOf = (text: string) => Array.from(graphemes.segment(text), ({ segment }) => segment)

/** Truncates a line to the width of the terminal. */
export function fitting(line: string, width: number): string {
  if (stringWidth(line) <= width) return line
  let shown = 0
  let kept = ''
  // Style sequences take no columns.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: style sequences begin with ESC
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

/** Truncates a text without styles at its end. */
export function beginning(text: string, width: number): string {
  return stringWidth(text) <= width ? text : `${taken(charactersOf(text), width - 1).join('')}…`
}

/** Truncates a text without styles in its middle, because names usually differ at their ends. */
export function ends(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  const characters = charactersOf(text)
  const front = Math.floor((width - 1) / 2)
  const back = taken(characters.toReversed(), width - 1 - front).reverse()
  return `${taken(characters, front).join('')}…${back.join('')}`
}

/** The first characters that fit into the width. */
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
  /** The content of a cell. The width applies to pictures and to texts that can be shortened. */
  readonly of: (row: Row, width: number) => string
  readonly align?: 'right'
  /**
   * For a column that shows the numbers of other columns as a picture: its widest and its narrowest width.
   */
  readonly picture?: { readonly most: number; readonly least: number }
  /** For a text that can be shortened: its minimum width. */
  readonly text?: { readonly least: number }
}

const GAP = '  '
const SHORTEST_NAME = 24

/** The width of the terminal, or unlimited without a terminal. */
export const tableWidth = () => (process.stdout.isTTY ? widthOf(process.stdout) : Number.POSITIVE_INFINITY)

/**
 * A table with columns as wide as their widest entry. If it is wider than the terminal, first the pictures
 * shrink, then the texts, never the numbers. If that is not enough, pictures are omitted and lines are
 * truncated.
 */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width = tableWidth(),
): string {
  const limits = columns.map(({ picture }) => picture?.most ?? Number.POSITIVE_INFINITY)
  const whole = cellsOf(rows, columns, limits)
  const widths = widthsOf(whole)
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1)) - width
  if (excess <= 0) return linesOf(whole, columns).join('\n')
  const shrink = (at: number, least: number) => {
    const given = Math.min(Math.max((widths[at] ?? 0) - least, 0), excess)
    if (given > 0) limits[at] = (widths[at] ?? 0) - given
    excess -= given
  }
  for (const [at, { picture }] of columns.entries()) if (picture !== undefined) shrink(at, picture.least)
  // Shrink the last columns first, because rows begin with their name.
  for (const [at, { text }] of [...columns.entries()].reverse())
    if (text !== undefined) shrink(at, text.least)
  const isPicture = ({ picture }: Column<Row>) => picture !== undefined
  if (excess > 0 && columns.some(isPicture)) {
    // Omit pictures that would be too small to show anything.
    return table(
      rows,
      columns.filter((column) => !isPicture(column)),
      width,
    )
  }
  return linesOf(cellsOf(rows, columns, limits), columns)
    .map((line) => fitting(line, width))
    .join('\n')
}

function cellsOf<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  limits: readonly number[],
): string[][] {
  return [
    columns.map(({ title }) => styled('dim', title)),
    ...rows.map((row) => columns.map(({ of }, at) => of(row, limits[at] ?? 0))),
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

/** A column of names. Long names are shortened, so that other columns stay visible. */
export function nameColumn<Row>(title: string, of: (row: Row) => string): Column<Row> {
  return { title, of: (row, width) => ends(shown(of(row)), width), text: { least: SHORTEST_NAME } }
}

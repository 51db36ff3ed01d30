import { styled, widthOf } from '../terminal.ts'
import { fitting, shownWidth } from './fitting.ts'

export interface Column<Row> {
  readonly title: string
  /** What stands in it; of a picture, as wide as it may be. */
  readonly of: (row: Row, width: number) => string
  readonly align?: 'right'
  /** Of a picture of what others say in numbers: how wide it is where there is room, and at the least. */
  readonly picture?: { readonly most: number; readonly least: number }
}

const GAP = '  '

/** Columns as wide as their widest entry. On a terminal pictures make room for numbers; then it is cut where it ends. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width = process.stdout.isTTY ? widthOf(process.stdout) : Number.POSITIVE_INFINITY,
): string {
  const lines = linesOf(rows, columns)
  const excess = Math.max(...lines.map(shownWidth)) - width
  if (excess <= 0) return lines.join('\n')
  const narrower = columns.flatMap((column) => narrowed(column, excess))
  return linesOf(rows, narrower)
    .map((line) => fitting(line, width))
    .join('\n')
}

/** A picture that is too small to show anything is left out. */
function narrowed<Row>(column: Column<Row>, excess: number): Column<Row>[] {
  const { picture } = column
  if (picture === undefined) return [column]
  const most = picture.most - excess
  return most < picture.least ? [] : [{ ...column, picture: { ...picture, most } }]
}

function linesOf<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string[] {
  const lines = [
    columns.map(({ title }) => styled('dim', title)),
    ...rows.map((row) => columns.map(({ of, picture }) => of(row, picture?.most ?? 0))),
  ]
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => shownWidth(line[at] ?? ''))))
  return lines.map((line) =>
    line
      .map((cell, at) => padded(cell, widths[at] ?? 0, columns[at]?.align))
      .join(GAP)
      .trimEnd(),
  )
}

function padded(cell: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(width - shownWidth(cell), 0))
  return align === 'right' ? space + cell : cell + space
}

/** Control characters in names must not reach the terminal. */
export function shown(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '·')
}

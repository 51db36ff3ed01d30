import { styled, widthOf } from '../terminal.ts'
import { fitting, shownWidth } from './fitting.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string
  readonly align?: 'right'
}

/** Columns as wide as their widest entry; on a terminal, cut where it ends. */
export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const lines = [
    columns.map(({ title }) => styled('dim', title)),
    ...rows.map((row) => columns.map((column) => column.of(row))),
  ]
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => shownWidth(line[at] ?? ''))))
  return lines
    .map((line) =>
      line
        .map((cell, at) => padded(cell, widths[at] ?? 0, columns[at]?.align))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => (process.stdout.isTTY ? fitting(line, widthOf(process.stdout)) : line))
    .join('\n')
}

function padded(cell: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(width - shownWidth(cell), 0))
  return align === 'right' ? space + cell : cell + space
}

/** Control characters in names must not reach the terminal. */
export function shown(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '·')
}

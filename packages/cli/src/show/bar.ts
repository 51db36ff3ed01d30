import { percentOf } from '@baton/protocol/core'
import { styled } from '../terminal.ts'

type Style = Parameters<typeof styled>[0]

export interface Segment {
  readonly amount: number
  readonly mark: string
  readonly style: Style
}

/**
 * A bar of `width` characters, divided in proportion to the amounts. An amount above zero is never rounded to
 * nothing: one parked partition among a million must be visible.
 */
export function bar(
  width: number,
  segments: readonly Segment[],
  stream: NodeJS.WriteStream = process.stdout,
): string {
  const total = segments.reduce((sum, { amount }) => sum + amount, 0)
  if (total === 0) return styled('dim', '·'.repeat(width), stream)
  const cells = segments.map(({ amount }) =>
    amount === 0 ? 0 : Math.max(Math.floor((amount / total) * width), 1),
  )
  const spare = width - cells.reduce((sum, cell) => sum + cell, 0)
  // The rounding error goes to the largest segment.
  const largest = segments.reduce(
    (best, { amount }, at) => (amount > (segments[best]?.amount ?? 0) ? at : best),
    0,
  )
  cells[largest] = Math.max((cells[largest] ?? 0) + spare, 0)
  return segments.map(({ mark, style }, at) => styled(style, mark.repeat(cells[at] ?? 0), stream)).join('')
}

export function percent(part: number, whole: number): string {
  return percentOf(part, whole) ?? ''
}

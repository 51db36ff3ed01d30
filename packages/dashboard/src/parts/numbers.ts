import { percentOf } from '@baton/protocol/core'

const whole = new Intl.NumberFormat('en')
const compactFormat = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const oneDecimal = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

/** Every digit, for tables: 1,234,567. */
export const exact = (value: number): string => whole.format(value)

/** Abbreviated: 1.2M. Small numbers stay exact. */
export const compact = (value: number): string =>
  value < 10_000 ? whole.format(Math.round(value)) : compactFormat.format(value)

/** For a column of fixed width: every digit, as long as they fit. */
export const inColumn = (value: number): string => (value < 1e12 ? exact(value) : compact(value))

export const perSecond = (value: number | null): string => {
  if (value === null) return '–'
  return value > 0 && value < 10 ? oneDecimal.format(value) : compact(value)
}

export function percent(part: number, total: number): string {
  return percentOf(part, total) ?? '–'
}

/** A lower bound: 300+. */
export const atLeast = (number: string, isExact: boolean): string => (isExact ? number : `${number}+`)

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${exact(count)} ${count === 1 ? one : many}`

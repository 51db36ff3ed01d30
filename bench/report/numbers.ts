import { median, spread } from '../harness/statistics.ts'
import type { Figure, Goal, Measurement } from './model.ts'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** Three significant digits for small numbers, thousands separators for large ones. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 100 || Number.isInteger(value)) return whole.format(value)
  return value.toFixed(size >= 10 ? 1 : 2)
}

export function medianAndSpread(values: readonly number[]): string {
  if (values.length === 0) return '–'
  const { median: middle, min, max } = spread(values)
  return values.length === 1 || min === max ? short(middle) : `${short(middle)} (${short(min)}–${short(max)})`
}

/** The median over the rounds of one field, or a dash where nobody took it. */
export function fieldMedian(
  measurements: readonly Measurement[],
  field: 'p50Ms' | 'p99Ms' | 'serverCpuSeconds' | 'serverRssMb' | 'clientCpuSeconds',
): string {
  const values = measurements.map((m) => m[field]).filter((value) => value !== undefined)
  return values.length === 0 ? '–' : short(median(values))
}

export function goalText(goal: Goal | undefined): string {
  if (goal?.atLeast !== undefined) return `≥ ${short(goal.atLeast)}`
  if (goal?.atMost !== undefined) return `≤ ${short(goal.atMost)}`
  return ''
}

/** Said, never asserted: a slow machine must not fail anybody's build. */
export function goalMet({ goal, values }: Figure): string {
  if (!goal || values.length === 0) return ''
  const value = median(values)
  const met = value >= (goal.atLeast ?? Number.NEGATIVE_INFINITY) && value <= (goal.atMost ?? Infinity)
  return met ? 'met' : 'missed'
}

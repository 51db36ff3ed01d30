import type { LeaseProgress } from '@baton/protocol'
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

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A duration in its two largest units: 45 s, 12 min, 3 h 20 min, 2 d 4 h. */
export function duration(seconds: number): string {
  const total = Math.max(0, Math.round(seconds))
  if (total < MINUTE) return `${total} s`
  if (total < 10 * MINUTE) return two(total, MINUTE, 'min', 1, 's')
  if (total < HOUR) return `${Math.round(total / MINUTE)} min`
  if (total < DAY) return two(total, HOUR, 'h', MINUTE, 'min')
  return two(total, DAY, 'd', HOUR, 'h')
}

/** The same for durations that may be below a second: 0.3 s, 4.2 s. */
export function brief(seconds: number): string {
  return seconds < 10 ? `${Number(seconds.toPrecision(2))} s` : duration(seconds)
}

function two(total: number, unit: number, name: string, smaller: number, smallerName: string): string {
  const rest = Math.floor((total % unit) / smaller)
  const first = `${Math.floor(total / unit)} ${name}`
  return rest === 0 ? first : `${first} ${rest} ${smallerName}`
}

export function ago(iso: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(iso)) / 1000)
  if (seconds < 2) return 'just now'
  if (seconds < MINUTE) return `${seconds} s ago`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ago`
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h ago`
  return `${Math.floor(seconds / DAY)} d ago`
}

/** The time until a timestamp. Clocks differ, so a timestamp that has just passed is shown as now. */
export function ahead(iso: string, now: number): string {
  const seconds = (Date.parse(iso) - now) / 1000
  return seconds < 1 ? 'now' : `in ${duration(seconds)}`
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' })

/** In the locale and time zone of the user, with the name of the zone. For tooltips and details. */
export const moment = (iso: string): string => full.format(new Date(iso))

const toSeconds = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

/** The time of day to the second, for recent events. */
export const timeOfDay = (at: number): string => toSeconds.format(at)

const toMinutes = { hour: '2-digit', minute: '2-digit' } as const
const withinDay = new Intl.DateTimeFormat(undefined, toMinutes)
const withinDays = new Intl.DateTimeFormat(undefined, { ...toMinutes, month: 'short', day: 'numeric' })

/** A time of day, with the day if it may be another one. */
export const clock = (at: number, millis: number): string =>
  (millis > (DAY / 2) * 1000 ? withinDays : withinDay).format(at)

/** A reason is often the end of a program's output, where the last line names the error. */
export function lastLine(text: string): string {
  return (
    text
      .split(/\r?\n/)
      .findLast((line) => line.trim() !== '')
      ?.trim() ?? text
  )
}

/** What a worker reported about its partition. */
export function progressWords({ records, note }: LeaseProgress, recordCount: number): string {
  const share = records === undefined ? '' : `${compact(records)} of ${compact(recordCount)}`
  return [share, note ?? ''].filter((words) => words !== '').join(' · ') || 'working'
}

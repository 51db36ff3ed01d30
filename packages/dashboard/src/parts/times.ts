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

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** The time of day to the second, for recent events. */
export const timeOfDay = (at: number): string => clock.format(at)

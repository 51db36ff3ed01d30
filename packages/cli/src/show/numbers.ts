// The first format of a process takes as long as starting it, so commands that show no number create none.
let whole: Intl.NumberFormat | undefined
let short: Intl.NumberFormat | undefined

/** 1234567 as 1,234,567. */
export function count(number: number): string {
  whole ??= new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
  return whole.format(number)
}

/** 1234567 as 1.23M. */
export function rounded(number: number): string {
  short ??= new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 })
  return short.format(number)
}

/** "1 partition", "2 partitions". */
export function counted(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`
}

/** Two units at most: 95 seconds as 1m 35s. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)}ms`
  if (seconds < 10) return `${Number(seconds.toFixed(1))}s`
  const rest = Math.round(seconds)
  const units = [
    [Math.floor(rest / 86_400), 'd'],
    [Math.floor(rest / 3600) % 24, 'h'],
    [Math.floor(rest / 60) % 60, 'm'],
    [rest % 60, 's'],
  ] as const
  const first = units.findIndex(([number]) => number > 0)
  return units
    .slice(first, first + 2)
    .filter(([number]) => number > 0)
    .map(([number, unit]) => `${number}${unit}`)
    .join(' ')
}

export function since(timestamp: string, now = Date.now()): string {
  return `${duration(Math.max((now - Date.parse(timestamp)) / 1000, 0))} ago`
}

/** The time until a timestamp. */
export function ahead(timestamp: string, now = Date.now()): string {
  const seconds = (Date.parse(timestamp) - now) / 1000
  return seconds > 0 ? `in ${duration(seconds)}` : 'now'
}

import { MAX_BATCH, MAX_WAIT_SECONDS } from './limits.ts'

/**
 * The preferences of a client (RFC 7240), limited to the allowed range. Preferences that it did not send are
 * absent.
 */
export interface Preferences {
  waitSeconds?: number
  batch?: number
  records?: number
  /** The value of the Preference-Applied header. Empty if no preference was understood. */
  applied: string
  /** The fault of the first supported preference that cannot be parsed. */
  fault?: string
}

/** The supported preferences: minimum, maximum, unit and field. */
const ours = {
  wait: { least: 0, most: MAX_WAIT_SECONDS, unit: 'seconds', field: 'waitSeconds' },
  batch: { least: 1, most: MAX_BATCH, unit: 'partitions', field: 'batch' },
  records: { least: 0, most: Number.MAX_SAFE_INTEGER, unit: 'records', field: 'records' },
} as const

type PreferenceName = keyof typeof ours

/** Parses one preference, from the Prefer header or the query. A value above the maximum is capped. */
export function readPreference(
  name: PreferenceName,
  value: string,
): { ok: true; value: number } | { ok: false; detail: string } {
  const { least, most, unit } = ours[name]
  const number = /^[0-9]+$/.test(value) ? Number(value) : -1
  if (number >= least) return { ok: true, value: Math.min(number, most) }
  return {
    ok: false,
    detail: `${name} must be a whole number of ${unit}${least > 0 ? `, at least ${least}` : ''}, such as ${name}=20, got ${JSON.stringify(value)}`,
  }
}

export function parsePrefer(header: string | string[] | undefined): Preferences {
  const mentioned = mentionedPreferences(Array.isArray(header) ? header.join(',') : (header ?? ''))
  const preferences: Preferences = { applied: '' }
  const applied: string[] = []
  for (const [name, value] of mentioned) {
    if (!Object.hasOwn(ours, name)) continue
    const read = readPreference(name as PreferenceName, value)
    if (read.ok) {
      preferences[ours[name as PreferenceName].field] = read.value
      applied.push(`${name}=${read.value}`)
    } else preferences.fault ??= read.detail
  }
  preferences.applied = applied.join(', ')
  return preferences
}

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
const quotedText = '"(?:[^"\\\\]|\\\\.)*"'
const preferencePattern = new RegExp(`^(${token})(?:[ \\t]*=[ \\t]*(${token}|${quotedText}))?$`)

/**
 * Name and value of each preference. Only the first occurrence counts, as the RFC requires. Parameters after
 * a semicolon are ignored, because no supported preference has any. An item that is malformed, but begins
 * with the name of a supported preference, counts as that preference with an unreadable value.
 */
function mentionedPreferences(header: string): Map<string, string> {
  const mentioned = new Map<string, string>()
  for (const item of splitOutsideQuotes(header, ',')) {
    const [preference = ''] = splitOutsideQuotes(item, ';')
    const text = preference.trim()
    const match = preferencePattern.exec(text)
    const name =
      match?.[1]?.toLowerCase() ?? /^(?:wait|batch|records)(?=[ \t=])/i.exec(text)?.[0].toLowerCase()
    if (name === undefined || mentioned.has(name)) continue
    mentioned.set(name, match === null ? text.slice(name.length) : unquoted(match[2] ?? ''))
  }
  return mentioned
}

/** Scanned by hand: a regular expression for the whole list would backtrack on hostile headers. */
function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = []
  let start = 0
  let inQuotes = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (inQuotes && character === '\\') at += 1
    else if (character === '"') inQuotes = !inQuotes
    else if (character === separator && !inQuotes) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}

function unquoted(word: string): string {
  return word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\(.)/g, '$1') : word
}

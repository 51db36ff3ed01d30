import { MAX_BATCH, MAX_WAIT_SECONDS } from './limits.ts'

/** What a client preferred (RFC 7240), already within bounds. What it left out or misspelt is absent. */
export interface Preferences {
  waitSeconds?: number
  batch?: number
  records?: number
  /** For the Preference-Applied header; empty when nothing was understood. */
  applied: string
}

export function parsePrefer(header: string | string[] | undefined): Preferences {
  const mentioned = mentionedPreferences(Array.isArray(header) ? header.join(',') : (header ?? ''))
  const preferences: Preferences = { applied: '' }
  const applied: string[] = []
  for (const [name, value] of mentioned) {
    const number = /^[0-9]+$/.test(value) ? Number(value) : undefined
    if (number === undefined) continue
    if (name === 'wait') {
      preferences.waitSeconds = Math.min(number, MAX_WAIT_SECONDS)
      applied.push(`wait=${preferences.waitSeconds}`)
    } else if (name === 'batch' && number >= 1) {
      preferences.batch = Math.min(number, MAX_BATCH)
      applied.push(`batch=${preferences.batch}`)
    } else if (name === 'records') {
      preferences.records = Math.min(number, Number.MAX_SAFE_INTEGER)
      applied.push(`records=${preferences.records}`)
    }
  }
  preferences.applied = applied.join(', ')
  return preferences
}

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
const quotedText = '"(?:[^"\\\\]|\\\\.)*"'
const preferencePattern = new RegExp(`^(${token})(?:[ \\t]*=[ \\t]*(${token}|${quotedText}))?$`)

/**
 * Name and value of each preference, first mention only: the RFC says that repetitions do not count. Parameters
 * after a semicolon are passed over, since none of our preferences has any.
 */
function mentionedPreferences(header: string): Map<string, string> {
  const mentioned = new Map<string, string>()
  for (const item of splitOutsideQuotes(header, ',')) {
    const [preference = ''] = splitOutsideQuotes(item, ';')
    const match = preferencePattern.exec(preference.trim())
    const name = match?.[1]?.toLowerCase()
    if (name !== undefined && !mentioned.has(name)) mentioned.set(name, unquoted(match?.[2] ?? ''))
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

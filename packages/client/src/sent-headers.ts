import { UnsendableError } from './errors.ts'

/** The field names and values of RFC 9110, one byte per character. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Held against the rules here: platforms refuse a header with the kind of error that an outage has. What is wrong with
 * it may be a token, and is not told. Of names that differ by their case the last one counts.
 */
export function sentHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const sent: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new UnsendableError(`the header ${name} has a name or a value that HTTP cannot carry`)
    }
    sent[name.toLowerCase()] = String(value)
  }
  return sent
}

/** Headers carry bytes, one per character; the service reads these bytes as UTF-8. */
export function headerText(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
}

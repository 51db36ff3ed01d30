import { UnsendableError } from './errors.ts'

/**
 * Held against the rules here: fetch refuses a header with the kind of error that an outage has. What is wrong with
 * it may be a token, and is not told.
 */
export function sentHeaders(headers: Readonly<Record<string, string>>): Headers {
  const sent = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    try {
      sent.set(name, value)
    } catch {
      throw new UnsendableError(`the header ${name} has a name or a value that HTTP cannot carry`)
    }
  }
  return sent
}

/** Headers carry bytes, one per character; the service reads these bytes as UTF-8. */
export function headerText(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
}

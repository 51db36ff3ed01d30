import { UnsendableError } from './errors.ts'

/** What is sent. Values that JSON has no form for, a BigInt or a circle, are told as every other failure of a call is. */
export function jsonText(value: unknown, what: string): string {
  try {
    // What has no JSON, like undefined, is left to whoever checks it, and names it.
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    throw new UnsendableError(`${what} cannot be written as JSON: ${(error as Error).message.split('\n')[0]}`)
  }
}

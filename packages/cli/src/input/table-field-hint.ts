import type { Violation } from '@baton/client'
import { quoted } from '@baton/protocol/without-schemas'

/**
 * Asks whether the service has another name for the table field, where a descriptor lacks the one that was expected and
 * has one that nobody knows. Each of the two faults alone leads astray: to leave the field out, or to rename it.
 */
export function tableFieldHint(errors: readonly Violation[], expected: string): string | undefined {
  const name = errors.map(({ pointer }) => namedAt(pointer, errors, expected)).find((found) => found)
  if (name === undefined) return undefined
  return `Does the service call the table field ${quoted(name)}? Then say so by --table-field or BATON_TABLE_FIELD.`
}

function namedAt(pointer: string, errors: readonly Violation[], expected: string): string | undefined {
  const [, position, missing = ''] = fieldPointer.exec(pointer) ?? []
  const about = errors.filter((error) => error.pointer.startsWith(`/${position}/`))
  if (!about.some((error) => error.pointer === pointer && error.detail === `${missing} is missing`)) {
    return undefined
  }
  const unknown = about
    .filter(({ detail }) => detail.includes(' is not a field of the contract; '))
    .filter(({ detail }) => missing !== expected || !detail.endsWith(`; did you mean ${expected}?`))
    .map((error) => unescaped(fieldPointer.exec(error.pointer)?.[2] ?? ''))
  // Found here, the file knows the name that the command does not; found by the service, it is the other way round.
  if (missing === expected) return unknown[0]
  return unknown.includes(expected) ? missing : undefined
}

const fieldPointer = /^\/(\d+)\/([^/]+)$/

const unescaped = (token: string) => token.replaceAll('~1', '/').replaceAll('~0', '~')

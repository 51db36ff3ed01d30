import type { Violation } from '@baton/client'
import { quoted } from '@baton/protocol/without-schemas'

/** The descriptor at a position, as it was read. */
type DescriptorAt = (position: number) => unknown

/**
 * Asks whether the service has another name for the table field, where a descriptor lacks the one that was expected and
 * has one that nobody knows, with what may be a table. Each of the two faults alone leads astray: to leave the field
 * out, or to rename it.
 */
export function tableFieldHint(
  errors: readonly Violation[],
  expected: string,
  descriptorAt: DescriptorAt,
): string | undefined {
  const name = errors
    .map(({ pointer }) => namedAt(pointer, errors, expected, descriptorAt))
    .find((found) => found)
  if (name === undefined) return undefined
  return `Does the service call the table field ${quoted(name)}? Then say so by --table-field or BATON_TABLE_FIELD.`
}

function namedAt(
  pointer: string,
  errors: readonly Violation[],
  expected: string,
  descriptorAt: DescriptorAt,
): string | undefined {
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
  if (missing === expected) return unknown.find((name) => holdsTable(descriptorAt(Number(position)), name))
  return unknown.includes(expected) ? missing : undefined
}

/** As `<schema>.<table>`: any other field that nobody knows is simply one too many. */
function holdsTable(descriptor: unknown, field: string): boolean {
  const value = (descriptor as Readonly<Record<string, unknown>> | undefined)?.[field]
  return typeof value === 'string' && /^[^.\s]+\.[^.\s]+$/.test(value)
}

const fieldPointer = /^\/(\d+)\/([^/]+)$/

const unescaped = (token: string) => token.replaceAll('~1', '/').replaceAll('~0', '~')

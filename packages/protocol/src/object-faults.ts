import { fieldFaults, type ObjectShape } from './field-faults.ts'
import { shownValue } from './shown-value.ts'
import { type CheckFailure, pointerTo, soleViolation, ViolationList } from './violation.ts'

/** Everything that is wrong with a body that is one object, or nothing; it is known not to fit. */
export function objectFaults(shape: ObjectShape, body: unknown): CheckFailure {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return soleViolation('', `the body must be ${expected(shape)}, got ${shownValue(body)}`)
  }
  const violations = new ViolationList()
  for (const { field, element, detail } of fieldFaults(shape, body as Record<string, unknown>, 'refuse')) {
    const pointer = pointerTo('', field)
    violations.add(element === undefined ? pointer : pointerTo(pointer, element), detail)
  }
  return violations.failure()
}

function expected({ properties }: ObjectShape): string {
  const fields = Object.keys(properties)
  if (fields.length === 0) return 'left out, or an empty object'
  const words = fields.length === 1 ? fields : [fields.slice(0, -1).join(', '), fields.at(-1)]
  return `left out, or an object with ${words.join(' or ')}`
}

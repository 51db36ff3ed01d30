import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { brokenRule, fieldFaults, type ObjectShape } from './field-faults.ts'
import { shownValue } from './shown-value.ts'
import { type CheckFailure, pointerTo, soleViolation, ViolationList } from './violation.ts'

export interface ArrayWording {
  /** What the body is, as in "the body must be an array of …". */
  elements: string
  maxElements: number
}

/**
 * Makes the check of a body that is an array of independent elements, objects or scalars: the schema decides, and
 * its keywords provide the words when something is wrong.
 */
export function arrayCheck<S extends TSchema>(element: S, wording: ArrayWording) {
  const compiled = Compile(element)
  const { elements, maxElements } = wording
  return (body: unknown): { ok: true; elements: Static<S>[] } | CheckFailure => {
    if (!Array.isArray(body)) {
      return soleViolation('', `the body must be an array of ${elements}, got ${shownValue(body)}`)
    }
    if (body.length === 0) return soleViolation('', `the array must not be empty: it holds ${elements}`)
    if (body.length > maxElements) {
      const detail = `the array must hold at most ${maxElements} ${elements}, got ${body.length}; send several requests`
      return soleViolation('', detail)
    }
    const violations = new ViolationList()
    for (let at = 0; at < body.length; at += 1) {
      if (!compiled.Check(body[at])) explain(element, body[at], pointerTo('', at), violations)
    }
    return violations.isEmpty ? { ok: true, elements: body as Static<S>[] } : violations.failure()
  }
}

function explain(schema: TSchema, value: unknown, at: string, violations: ViolationList): void {
  if ((schema as { type?: string }).type !== 'object') {
    const rule = brokenRule(schema, value) ?? 'is not valid'
    violations.add(at, () => `each element ${rule}, got ${shownValue(value)}`)
  } else if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    violations.add(at, () => `each element must be an object, got ${shownValue(value)}`)
  } else {
    const shape = schema as unknown as ObjectShape
    for (const fault of fieldFaults(shape, value as Record<string, unknown>, 'ignore')) {
      violations.add(pointerTo(at, fault.field), fault.detail)
    }
  }
}

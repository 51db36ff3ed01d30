import Type, { type Static, type TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { refusalCodes, refusalDetail } from '../error-codes.ts'
import { brokenRule, fieldFaults, type ObjectShape } from '../field-faults.ts'
import { wellFormedText } from '../text-form.ts'
import { type CheckFailure, describeValue, pointerTo, soleViolation, ViolationList } from '../violation.ts'
import { oneOf } from './schema-parts.ts'

interface ArrayWording {
  /** Completes the message "the body must be an array of …". */
  elements: string
  maxElements: number
}

/**
 * Creates the check of a body that is an array of independent elements, objects or scalars. The compiled
 * schema decides; its keywords give the explanation when an element is invalid.
 */
export function arrayCheck<S extends TSchema>(element: S, wording: ArrayWording) {
  const compiled = Compile(element)
  const { elements, maxElements } = wording
  return (body: unknown): { ok: true; elements: Static<S>[] } | CheckFailure => {
    if (!Array.isArray(body)) {
      return soleViolation('', `the body must be an array of ${elements}, got ${describeValue(body)}`)
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
    violations.add(at, () => `each element ${rule}, got ${describeValue(value)}`)
  } else if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    violations.add(at, () => `each element must be an object, got ${describeValue(value)}`)
  } else {
    const shape = schema as unknown as ObjectShape
    for (const fault of fieldFaults(shape, value as Record<string, unknown>, 'ignore')) {
      violations.add(pointerTo(at, fault.field), fault.detail)
    }
  }
}

/**
 * A lease id as a client sends it: any text of a reasonable size, because an unknown lease is a regular
 * answer and not an error.
 */
export const leaseIdSchema = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: wellFormedText.pattern,
  description: 'The id of a lease, from a pull',
  examples: ['b3xq7Yt1cZ0kPm4vL9sNfg'],
})

export const refusalSchema = Type.Object(
  {
    leaseId: Type.String({ description: 'The lease as it was named in the request' }),
    code: oneOf(refusalCodes, { description: 'Why, from the registry of error codes' }),
    detail: Type.String({
      description: 'Why, for a person',
      examples: [refusalDetail('lease_lost')],
    }),
  },
  { description: 'A lease for which the request had no effect; the others are unaffected by it' },
)
export type Refusal = Static<typeof refusalSchema>

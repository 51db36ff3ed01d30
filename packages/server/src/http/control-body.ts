import { didYouMean, listedViolations, MAX_LISTED_VIOLATIONS, type Violation } from '@baton/protocol'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { RequestProblem } from './problems.ts'

/** The body of a control request: none at all, or an object with known fields only. A slip here must not act. */
export function controlBody<Schema extends TSchema>(schema: Schema, body: unknown): Static<Schema> {
  const value = body === undefined ? {} : body
  const unknown = unknownFields(schema, value)
  if (unknown.length > 0) throw brokenControl(unknown)
  if (!Value.Check(schema, value)) {
    const found = [...Value.Errors(schema, value)].map(violationOf)
    throw brokenControl(found.length > 0 ? found : [{ pointer: '', detail: 'is not what this takes' }])
  }
  return value as Static<Schema>
}

export function brokenControl(found: readonly Violation[]): RequestProblem {
  const violations = found.slice(0, MAX_LISTED_VIOLATIONS)
  return new RequestProblem('contract_violation', 'the body is not what this takes; see errors', {
    extra: listedViolations({ ok: false, violations, total: found.length }),
  })
}

function unknownFields(schema: TSchema, value: unknown): Violation[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const fields = Object.keys((schema as { properties?: object }).properties ?? {})
  return Object.keys(value)
    .filter((field) => !fields.includes(field))
    .map((field) => {
      const meant = didYouMean(field, fields)
      const hint = meant === undefined ? '' : `; did you mean ${meant}?`
      const pointer = `/${field.replaceAll('~', '~0').replaceAll('/', '~1')}`
      return { pointer, detail: `this field is not known here${hint}` }
    })
}

interface SchemaError {
  readonly instancePath: string
  readonly message: string
}

function violationOf({ instancePath, message }: SchemaError): Violation {
  return { pointer: instancePath, detail: `${instancePath === '' ? 'the body' : 'this'} ${message}` }
}

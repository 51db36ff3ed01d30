import { listedViolations, MAX_LISTED_VIOLATIONS, type Violation } from '@baton/protocol'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { RequestProblem } from './problems.ts'

/** The body of a control request: none at all, or an object with known fields only. A slip here must not act. */
export function controlBody<Schema extends TSchema>(schema: Schema, body: unknown): Static<Schema> {
  const value = body === undefined ? {} : body
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

interface SchemaError {
  readonly instancePath: string
  readonly message: string
}

function violationOf({ instancePath, message }: SchemaError): Violation {
  return { pointer: instancePath, detail: `${instancePath === '' ? 'the body' : 'this'} ${message}` }
}

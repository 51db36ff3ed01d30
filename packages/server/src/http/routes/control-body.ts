import { type CheckFailure, MAX_LISTED_VIOLATIONS, objectFaults, type Violation } from '@baton/protocol'
import type { Static, TObject } from 'typebox'
import { Check } from 'typebox/schema'
import { brokenContract, type RequestProblem } from '../answers/problems.ts'

/** The body of a control request: none at all, or an object with known fields only. A slip here must not act. */
export function controlBody<Schema extends TObject>(schema: Schema, body: unknown): Static<Schema> {
  const value = body === undefined ? {} : body
  if (!Check(schema, value)) throw broken(objectFaults(schema, value))
  return value as Static<Schema>
}

export function brokenControl(found: readonly Violation[]): RequestProblem {
  const violations = found.slice(0, MAX_LISTED_VIOLATIONS)
  return broken({ ok: false, violations, total: found.length })
}

const broken = (failure: CheckFailure) => brokenContract('the body is not what this takes', failure)

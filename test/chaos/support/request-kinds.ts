import {
  callBackAnswerSchema,
  controlAnswerSchema,
  type ErrorCode,
  instanceListSchema,
  partitionListSchema,
  pullAnswerSchema,
  renewAnswerSchema,
  settleAnswerSchema,
  tableSettingsAnswerSchema,
  taskViewSchema,
} from '@baton/protocol'
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'

/** A kind of request, and the answers that the protocol allows for it here. */
export interface RequestKind<Body> {
  readonly method: 'GET' | 'PATCH' | 'POST'
  /** The allowed statuses, besides those that only say to retry later. */
  readonly problems: readonly ErrorCode[]
  /** What is wrong with a body of status 200. */
  fault(body: unknown): string | undefined
  /** Has no value; it only carries the type of the answer. */
  readonly answer?: Body
}

function kind<Schema extends TSchema>(
  method: 'GET' | 'PATCH' | 'POST',
  schema: Schema,
  problems: readonly ErrorCode[] = [],
): RequestKind<Static<Schema>> {
  const compiled = Compile(schema)
  const fault = (body: unknown) =>
    compiled.Check(body) ? undefined : JSON.stringify(compiled.Errors(body).slice(0, 3))
  return { method, problems, fault }
}

export const requestKinds = {
  callBack: kind('POST', callBackAnswerSchema, ['task_cancelled']),
  pull: kind('GET', pullAnswerSchema()),
  settle: kind('POST', settleAnswerSchema()),
  renew: kind('POST', renewAnswerSchema),
  control: kind('POST', controlAnswerSchema, ['task_finished', 'task_cancelled']),
  tableSettings: kind('PATCH', tableSettingsAnswerSchema),
  task: kind('GET', taskViewSchema),
  partitions: kind('GET', partitionListSchema()),
  instances: kind('GET', instanceListSchema),
}

/** A node that has lost its store, or is overloaded, answers so; the client has to retry. */
export const retryLater: readonly ErrorCode[] = ['store_unavailable', 'overloaded']

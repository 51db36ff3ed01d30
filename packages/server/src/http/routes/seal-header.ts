import type { IncomingHttpHeaders } from 'node:http'
import Type from 'typebox'
import type { CallBackOrder } from '../../handoff/store.ts'
import { RequestProblem } from '../answers/problems.ts'

export const SEAL_HEADER = 'baton-seal'

export const sealHeader = {
  [SEAL_HEADER]: Type.Optional(
    Type.String({
      pattern: '^(?:true|[0-9]{1,16})$',
      description:
        'Also seals the task, in the same step: `true`, or the number of partitions that the task has in all',
      examples: ['true'],
    }),
  ),
}

/** Whether a call-back also seals its task. */
export function sealOf(headers: IncomingHttpHeaders): NonNullable<CallBackOrder['seal']> | null {
  const text = headers[SEAL_HEADER]
  if (text === undefined) return null
  if (text === 'true') return { partitions: null }
  const partitions = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(partitions)) return { partitions }
  throw new RequestProblem(
    'parameter_invalid',
    'Baton-Seal must be true, or the number of partitions that the task has in all',
  )
}

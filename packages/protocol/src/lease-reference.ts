import Type, { type Static } from 'typebox'
import { refusalCodes, refusalDetail } from './refusal-codes.ts'
import { oneOf } from './schema-parts.ts'
import { wellFormedText } from './text-form.ts'

/** A lease id as a client sends it: any text of a sane size, since an unknown one is an answer and not an error. */
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

import Type, { type Static } from 'typebox'

export const violationSchema = Type.Object(
  {
    pointer: Type.String({
      description: 'JSON Pointer (RFC 6901) to the offending value; empty for the whole body',
      examples: ['/3/record_count'],
    }),
    detail: Type.String({
      description: 'What is wrong there, and what would be right',
      examples: ['record_count must be a non-negative integer, got the string "5"'],
    }),
  },
  { description: 'One place where a body departs from the contract' },
)
export type Violation = Static<typeof violationSchema>

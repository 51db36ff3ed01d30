import Type, { type Static } from 'typebox'
import { problemCodes } from '../error-codes.ts'
import { MAX_LISTED_VIOLATIONS } from '../limits.ts'
import { count, oneOf } from './schema-parts.ts'

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

export const conflictSchema = Type.Object(
  {
    pointer: Type.String({ description: 'JSON Pointer to the descriptor in the array', examples: ['/4'] }),
    partition_name: Type.String({ description: 'As it was sent', examples: ['orders-2026-03-0-7'] }),
    detail: Type.String({
      description: 'How it differs from what is stored',
      examples: ['record_count is 120 here and 100 in what was accepted before'],
    }),
  },
  { description: 'A partition that is already known with other content' },
)
export type Conflict = Static<typeof conflictSchema>

export const problemSchema = Type.Object(
  {
    type: Type.String({
      description: 'Identifies the kind of problem',
      examples: ['urn:baton:problem:contract-violation'],
    }),
    title: Type.String({ description: 'The kind of problem in a few words' }),
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'The HTTP status', examples: [422] }),
    detail: Type.String({ description: 'This occurrence, for a person who has to act on it' }),
    code: oneOf(problemCodes, { description: 'The kind of problem, for programs' }),
    retryable: Type.Boolean({ description: 'Whether the same request may succeed later' }),
    instance: Type.Optional(
      Type.String({ description: 'Identifies this occurrence, for finding it in the logs' }),
    ),
    errors: Type.Optional(Type.Array(violationSchema, { maxItems: MAX_LISTED_VIOLATIONS })),
    errorsOmitted: Type.Optional(count({ description: 'Violations beyond those listed' })),
    conflicts: Type.Optional(Type.Array(conflictSchema)),
    conflictsOmitted: Type.Optional(count({ description: 'Conflicts beyond those listed' })),
  },
  { description: 'Why a request was not carried out (RFC 9457)' },
)
export type Problem = Static<typeof problemSchema>

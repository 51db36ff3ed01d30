import Type, { type Static } from 'typebox'
import { problemCodes } from '../error-codes.ts'
import { MAX_LISTED_VIOLATIONS } from '../limits.ts'
import { count, oneOf } from './schema-parts.ts'

export const violationSchema = Type.Object(
  {
    pointer: Type.String({
      description: 'JSON Pointer (RFC 6901) to the invalid value; empty for the whole body',
      examples: ['/3/record_count'],
    }),
    detail: Type.String({
      description: 'What is wrong, and what is expected',
      examples: ['record_count must be a non-negative integer, got the string "5"'],
    }),
  },
  { description: 'One violation of the contract' },
)
export type Violation = Static<typeof violationSchema>

export const conflictSchema = Type.Object(
  {
    pointer: Type.String({ description: 'JSON Pointer to the descriptor in the array', examples: ['/4'] }),
    partition_name: Type.String({
      description: 'The partition_name that was sent',
      examples: ['orders-2026-03-0-7'],
    }),
    detail: Type.String({
      description: 'How the descriptor differs from the stored one',
      examples: ['record_count is 120 in the request and 100 in the stored descriptor'],
    }),
  },
  { description: 'A partition that already exists with different content' },
)
export type Conflict = Static<typeof conflictSchema>

export const problemSchema = Type.Object(
  {
    type: Type.String({
      description: 'Identifies the kind of problem',
      examples: ['urn:baton:problem:contract-violation'],
    }),
    title: Type.String({ description: 'A short summary of the kind of problem' }),
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'The HTTP status', examples: [422] }),
    detail: Type.String({ description: 'An explanation of this occurrence, for people' }),
    code: oneOf(problemCodes, { description: 'The error code, for programs' }),
    retryable: Type.Boolean({ description: 'Whether the same request may succeed later' }),
    instance: Type.Optional(
      Type.String({ description: 'Identifies this occurrence in the log of the service' }),
    ),
    errors: Type.Optional(Type.Array(violationSchema, { maxItems: MAX_LISTED_VIOLATIONS })),
    errorsOmitted: Type.Optional(count({ description: 'Number of violations that are not listed' })),
    conflicts: Type.Optional(Type.Array(conflictSchema)),
    conflictsOmitted: Type.Optional(count({ description: 'Number of conflicts that are not listed' })),
  },
  { description: 'Why a request was not carried out (RFC 9457)' },
)
export type Problem = Static<typeof problemSchema>

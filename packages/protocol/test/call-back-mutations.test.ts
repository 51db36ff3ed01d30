import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkCallBack, type PartitionDescriptor } from '../src/index.ts'
import { anyCallBackBody } from './sample-descriptors.ts'

type Loose = Record<string, unknown>

const fields = ['taskId', 'computeTableName', 'partition_name', 'record_count', 'priorityLevel'] as const

/** A change that breaks the contract in one place, and the field that must be reported. */
const mutations: { name: string; field: string; apply: (descriptor: Loose) => void }[] = [
  ...fields.map((field) => ({
    name: `${field} left out`,
    field,
    apply: (descriptor: Loose) => {
      delete descriptor[field]
    },
  })),
  ...fields.map((field) => ({
    name: `${field} of another type`,
    field,
    apply: (descriptor: Loose) => {
      descriptor[field] = typeof descriptor[field] === 'number' ? String(descriptor[field]) : 0
    },
  })),
  ...fields.map((field) => ({
    name: `${field} null`,
    field,
    apply: (descriptor: Loose) => {
      descriptor[field] = null
    },
  })),
  ...(['record_count', 'priorityLevel'] as const).flatMap((field) =>
    [-1, 0.5, 2 ** 53].map((value) => ({
      name: `${field} ${value}`,
      field,
      apply: (descriptor: Loose) => {
        descriptor[field] = value
      },
    })),
  ),
  ...(['taskId', 'computeTableName', 'partition_name'] as const).flatMap((field) =>
    ['\0', '\ud800', '.'.repeat(1100)].map((tail) => ({
      name: `${field} followed by ${JSON.stringify(tail.slice(0, 3))}`,
      field,
      apply: (descriptor: Loose) => {
        descriptor[field] = `${descriptor[field]}${tail}`
      },
    })),
  ),
  {
    name: 'the next group in the name',
    field: 'partition_name',
    apply: (descriptor) => {
      const { taskId, priorityLevel } = descriptor as PartitionDescriptor
      descriptor['partition_name'] = `${taskId}-${priorityLevel === 0 ? 1 : 0}-1`
    },
  },
  {
    name: 'an unknown field',
    field: 'recordCount',
    apply: (descriptor) => {
      descriptor['recordCount'] = 1
    },
  },
]

describe('any valid call-back with one error', () => {
  test.each(mutations)('is refused, pointing to it: $name', ({ field, apply }) => {
    fc.assert(
      fc.property(anyCallBackBody, fc.nat(), (body, choice) => {
        const at = choice % body.length
        const mutated = structuredClone(body) as Loose[]
        apply(mutated[at] as Loose)
        const check = checkCallBack(mutated)
        expect(check.ok).toBe(false)
        expect(check.ok ? [] : check.violations.map(({ pointer }) => pointer)).toContain(`/${at}/${field}`)
      }),
      { numRuns: 40 },
    )
  })

  test('is refused with an element repeated', () => {
    fc.assert(
      fc.property(anyCallBackBody, (body) => {
        const check = checkCallBack([...body, body.at(-1)])
        expect(check.ok ? [] : check.violations.map(({ pointer }) => pointer)).toEqual([
          `/${body.length}/partition_name`,
        ])
      }),
    )
  })
})

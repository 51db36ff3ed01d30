import type { TSchema } from 'typebox'
import { Check } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import * as protocol from '../src/index.ts'

/** Every schema that the package exports; those that depend on the table field, with its default name. */
const schemas: [string, TSchema][] = Object.entries(protocol)
  .filter(([name]) => name.toLowerCase().endsWith('schema'))
  .map(([name, made]) => [name, (typeof made === 'function' ? (made as () => TSchema)() : made) as TSchema])

function* partsOf(schema: object): Generator<TSchema & { examples?: unknown[] }> {
  yield schema as TSchema
  for (const value of Object.values(schema)) {
    if (typeof value === 'object' && value !== null) yield* partsOf(value)
  }
}

describe('a schema', () => {
  test.each(schemas)('%s has only examples that it would accept', (_, schema) => {
    for (const part of partsOf(schema)) {
      if (!Array.isArray(part.examples)) continue
      const { format: _unchecked, ...rules } = part as TSchema & { format?: string }
      for (const example of part.examples)
        expect([example, Check(rules as TSchema, example)]).toEqual([example, true])
    }
  })

  test.each(schemas)('%s can be serialized as JSON', (_, schema) => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual({ ...schema })
  })

  test('that describes an object has a name', () => {
    const named = new Set(Object.values(protocol.namedSchemas()).map((schema) => JSON.stringify(schema)))
    const objects = schemas.filter(([, schema]) => {
      const { properties } = schema as { properties?: object }
      return properties !== undefined && Object.keys(properties).length > 0
    })
    const unnamed = objects.filter(([, schema]) => !named.has(JSON.stringify(schema)))
    expect(objects.length).toBeGreaterThan(30)
    expect(unnamed.map(([exported]) => exported)).toEqual([])
  })

  test('has the table under its configured name', () => {
    const { properties } = protocol.pulledPartitionSchema('cubeTableName')
    expect(Object.keys(properties)).toEqual([
      'taskId',
      'cubeTableName',
      'partition_name',
      'record_count',
      'priorityLevel',
      'lease',
      'traceparent',
    ])
  })

  test.each(['', 'taskId', '__proto__'])('cannot have the table under the name %j', (name) => {
    expect(() => protocol.descriptorSchema(name)).toThrow(RangeError)
  })

  test('accepts a handed-out partition with or without a lease', () => {
    const partition = {
      taskId: 'orders',
      computeTableName: 'results.orders',
      partition_name: 'orders-0-1',
      record_count: 1,
      priorityLevel: 0,
    }
    const lease = {
      id: 'a',
      attempt: 1,
      fencingToken: 1,
      expiresAt: '2026-03-01T12:00:00.000Z',
      expiresInSeconds: 300,
    }
    const answer = protocol.pullAnswerSchema()
    expect(Check(answer, { partitions: [{ ...partition, lease }] })).toBe(true)
    expect(Check(answer, { partitions: [{ ...partition, lease: null }] })).toBe(true)
    expect(Check(answer, { partitions: [partition] })).toBe(false)
  })
})

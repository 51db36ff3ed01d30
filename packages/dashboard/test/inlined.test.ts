import { expect, test } from 'vitest'
import { inlined } from '../src/reference/inlined.ts'

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

test('references are replaced by their schemas, with the description at the reference', () => {
  const count = { type: 'integer', description: 'a number' }
  const { answer } = inlined({
    answer: { type: 'array', items: reference('Row') },
    components: {
      schemas: {
        Row: {
          properties: { all: reference('Count'), done: { ...reference('Count'), description: 'done' } },
        },
        Count: count,
      },
    },
  })
  expect(answer).toEqual({
    type: 'array',
    items: { properties: { all: count, done: { type: 'integer', description: 'done' } } },
  })
})

test('references to anything but schemas are kept', () => {
  const document = {
    examples: { task_unknown: { $ref: '#/components/examples/task_unknown' } },
    components: {},
  }
  expect(inlined(document)).toEqual(document)
})

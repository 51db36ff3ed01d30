import { expect, test } from 'vitest'
import { readTraceparent } from '../src/index.ts'

const [TRACE, PARENT] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']

test('a traceparent is passed on unchanged', () => {
  for (const flags of ['00', '01', '03']) {
    const text = `00-${TRACE}-${PARENT}-${flags}`
    expect(readTraceparent(text)).toBe(text)
  }
})

test('a later version is passed on as version 00, with the known flag', () => {
  expect(readTraceparent(`01-${TRACE}-${PARENT}-03`)).toBe(`00-${TRACE}-${PARENT}-01`)
  expect(readTraceparent(`cc-${TRACE}-${PARENT}-fe-more`)).toBe(`00-${TRACE}-${PARENT}-00`)
})

test.each([
  undefined,
  '',
  'garbage',
  `ff-${TRACE}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}-01-more`,
  `cc-${TRACE}-${PARENT}-01.more`,
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}-1`,
  `00-${TRACE}-${PARENT}`,
  `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`,
  ` 00-${TRACE}-${PARENT}-01`,
])('%s is ignored', (text) => {
  expect(readTraceparent(text)).toBeNull()
})

import { describe, expect, test } from 'vitest'
import { checkCallBack, InexactNumber, parseExactJson } from '../src/index.ts'
import { descriptor } from './sample-descriptors.ts'

describe('numbers whose fraction would be rounded away', () => {
  test.each([
    '1.00000000000000000001',
    '4503599627370497.5',
    '1e-400',
    '12345678901234567891e-1',
    '-0.5e-400',
  ])('are not treated as integers: %s', (text) => {
    expect(parseExactJson(`[${text}]`)).toEqual([new InexactNumber(text)])
    expect(parseExactJson(`{"a": ${text}}`)).toEqual({ a: new InexactNumber(text) })
    expect(parseExactJson(text)).toEqual(new InexactNumber(text))
  })

  test.each([
    '1.0',
    '1.00000000000000000000',
    '1e3',
    '1.5',
    '0.1',
    '12.5e1',
    '-0',
    '90071992547409931234',
    '1e-2',
  ])('are distinguished from others: %s is parsed as by JSON.parse', (text) =>
    expect(parseExactJson(`[${text}]`)).toEqual(JSON.parse(`[${text}]`)),
  )

  test('are unchanged within a string', () => {
    const text = '["a: 1.00000000000000000001"]'
    expect(parseExactJson(text)).toEqual(JSON.parse(text))
  })

  test('are refused in a call-back with their position and original text', () => {
    const text = JSON.stringify([descriptor()]).replace(
      /"record_count":\d+/,
      '"record_count":1.00000000000000000001',
    )
    const checked = checkCallBack(parseExactJson(text))
    expect(checked).toMatchObject({
      ok: false,
      violations: [
        {
          pointer: '/0/record_count',
          detail: 'record_count must be a non-negative integer, got the number 1.00000000000000000001',
        },
      ],
    })
  })
})

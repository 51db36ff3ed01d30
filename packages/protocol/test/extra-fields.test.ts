import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkCallBack, MAX_EXTRA_FIELDS_BYTES, parseExactJson } from '../src/index.ts'

const plain = {
  taskId: 'orders',
  computeTableName: 'results.orders',
  partition_name: 'orders-0-7',
  record_count: 10,
  priorityLevel: 0,
}

/** As a service reads it from the wire. */
const check = (json: string, options = {}) =>
  checkCallBack(parseExactJson(json), { unknownFields: 'keep', ...options })

const kept = (extra: string): string | null | undefined => {
  const checked = check(`[${JSON.stringify(plain).slice(0, -1)},${extra}}]`)
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations))
  return checked.callBack.partitions[0]?.extraFields
}

const faults = (...elements: object[]) => {
  const checked = check(JSON.stringify(elements))
  return checked.ok ? [] : checked.violations
}

describe('fields beyond the contract', () => {
  test('are kept as they came, in their order', () => {
    for (const text of [
      '{"region":"eu","a":[1,2.5,{"b":null}],"":true}',
      '{"__proto__":{"a":1},"toJSON":"x"}',
      String.raw`{"text":"\u0000 \ud800 \" é"}`,
    ])
      expect(kept(text.slice(1, -1))).toBe(text)
  })

  test('are absent if there are none, or if they are not kept', () => {
    const keep = check(JSON.stringify([plain]))
    expect(keep.ok && 'extraFields' in (keep.callBack.partitions[0] ?? {})).toBe(false)
    const ignore = checkCallBack([{ ...plain, a: 1 }], { unknownFields: 'ignore' })
    expect(ignore.ok && 'extraFields' in (ignore.callBack.partitions[0] ?? {})).toBe(false)
    expect(checkCallBack([{ ...plain, a: 1 }]).ok).toBe(false)
  })

  test('are kept or refused by name, whatever their JSON value', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), (extra) => {
        const descriptor = { ...extra, ...plain }
        const checked = check(JSON.stringify([descriptor]))
        if (!checked.ok) return checked.violations.every(({ pointer }) => pointer.startsWith('/0/'))
        const text = checked.callBack.partitions[0]?.extraFields ?? '{}'
        return (
          JSON.stringify({ ...plain, ...JSON.parse(text) }) === JSON.stringify({ ...plain, ...normal(extra) })
        )
      }),
    )
  })

  test('are bounded, and the field that exceeds the limit is named', () => {
    const longest = MAX_EXTRA_FIELDS_BYTES - '{"a":""}'.length
    expect(kept(`"a":"${'x'.repeat(longest)}"`)).toHaveLength(MAX_EXTRA_FIELDS_BYTES)
    const detail =
      'with "b", the additional fields exceed 2048 bytes of JSON; store large values elsewhere and send a reference'
    expect(faults(plain, { ...plain, partition_name: 'orders-0-8', a: 'x'.repeat(longest), b: 1 })).toEqual([
      { pointer: '/1/b', detail },
    ])
    // In bytes, not in characters.
    expect(faults({ ...plain, a: 'é'.repeat(longest / 2 + 1) })).toMatchObject([{ pointer: '/0/a' }])
  })

  test('must not have the name of a field of a pulled partition', () => {
    expect(faults({ ...plain, lease: 1, traceparent: 'x' })).toEqual([
      {
        pointer: '/0/lease',
        detail:
          '"lease" is reserved for a field that the service adds to pulled partitions; choose another name',
      },
      {
        pointer: '/0/traceparent',
        detail:
          '"traceparent" is reserved for a field that the service adds to pulled partitions; choose another name',
      },
    ])
    const { computeTableName, ...others } = plain
    const renamed = check(JSON.stringify([{ ...others, t: computeTableName, computeTableName: 'a.b' }]), {
      tableField: 't',
    })
    expect(!renamed.ok && renamed.violations).toMatchObject([{ pointer: '/0/computeTableName' }])
  })

  test('contain no number that JavaScript would change, and have a maximum depth', () => {
    for (const number of ['9007199254740993', '-1e17', '1e400', '9007199254740993.5'])
      expect(() => kept(`"a":[{"b":${number}}]`)).toThrow('beyond 2^53 - 1')
    expect(kept('"a":[9007199254740991,0.1,1.0,1.00000000000000000001]')).toBe(
      '{"a":[9007199254740991,0.1,1,1]}',
    )
    expect(kept(`"a":${'['.repeat(14)}${']'.repeat(14)}`)).toBeDefined()
    for (const depth of [15, 20_000])
      expect(() => kept(`"a":${'['.repeat(depth)}${']'.repeat(depth)}`)).toThrow('nested more than 14')
  })

  test('are reported with other violations of an element', () => {
    expect(
      faults({ ...plain, lease: 1, record_count: -1, a: 2n ** 0n === 1n }).map((one) => one.pointer),
    ).toEqual(['/0/record_count', '/0/lease'])
  })
})

/** In the key order of JSON.parse. */
const normal = (extra: object): object => {
  const known = new Set(Object.keys(plain))
  const text = JSON.stringify(Object.fromEntries(Object.entries(extra).filter(([name]) => !known.has(name))))
  return JSON.parse(text) as object
}

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parsePrefer } from '../src/index.ts'

describe('the Prefer header', () => {
  test('sets the wait, the batch and the record budget', () => {
    expect(parsePrefer('wait=20, batch=50, records=200000')).toEqual({
      waitSeconds: 20,
      batch: 50,
      records: 200_000,
      applied: 'wait=20, batch=50, records=200000',
    })
  })

  test('may be absent, or contain only unknown preferences', () => {
    expect(parsePrefer(undefined)).toEqual({ applied: '' })
    expect(parsePrefer('')).toEqual({ applied: '' })
    expect(parsePrefer('respond-async, return=minimal')).toEqual({ applied: '' })
  })

  test('is capped at the maximum, and reports what was applied', () => {
    expect(parsePrefer('wait=3600, batch=99999999999999999999')).toEqual({
      waitSeconds: 60,
      batch: 1000,
      applied: 'wait=60, batch=1000',
    })
  })

  test.each(['wait', 'wait=', 'wait=""', 'wait=-1', 'wait=1.5', 'wait=ten', 'wait="5', 'wait 5', 'batch=0'])(
    'reports the expected form of an invalid preference: %s',
    (header) => {
      const { fault, applied, ...others } = parsePrefer(header)
      expect(fault).toMatch(/^(wait|batch) must be a whole number of (seconds|partitions)/)
      expect({ applied, others }).toEqual({ applied: '', others: {} })
      const more = parsePrefer(`records=7, ${header}`)
      expect(more).toMatchObject({ records: 7, applied: 'records=7' })
      expect(more.fault).toBe(fault)
    },
  )

  test('ignores unknown preferences, whatever they look like', () => {
    for (const header of ['=5', 'waiting=soon', 'handling=lenient', 'batches 5', '"wait=x"'])
      expect(parsePrefer(`${header}, records=7`)).toEqual({ records: 7, applied: 'records=7' })
  })

  test('caps a record budget at the largest safe integer', () => {
    for (const records of ['9007199254740992', '9'.repeat(400)])
      expect(parsePrefer(`records=${records}`)).toEqual({
        records: Number.MAX_SAFE_INTEGER,
        applied: 'records=9007199254740991',
      })
  })

  test('counts the first mention of a preference only, over several headers too', () => {
    expect(parsePrefer('wait=1, wait=2')).toEqual({ waitSeconds: 1, applied: 'wait=1' })
    expect(parsePrefer(['batch=3', 'batch=4, wait=5'])).toEqual({
      batch: 3,
      waitSeconds: 5,
      applied: 'batch=3, wait=5',
    })
    expect(parsePrefer('wait=soon, wait=2')).toMatchObject({ applied: '', fault: expect.any(String) })
  })

  test('may have quoted values, parameters, spaces and any case', () => {
    expect(parsePrefer('Wait = "10" ; a=b ; c="x, batch=9; \\" y", , BATCH=\t"\\5"')).toEqual({
      waitSeconds: 10,
      batch: 5,
      applied: 'wait=10, batch=5',
    })
  })

  test('never throws, and never leaves the bounds', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('wait', 'batch', 'records', '=', ';', ',', '"', '\\', ' ', '7', '0', '-'),
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const { waitSeconds = 0, batch = 1, records = 0 } = parsePrefer(pieces.join(''))
        expect(waitSeconds >= 0 && waitSeconds <= 60).toBe(true)
        expect(batch >= 1 && batch <= 1000).toBe(true)
        expect(Number.isSafeInteger(records)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  test('takes no longer for a hostile header', () => {
    // Processor time of this process only, so other load does not matter. It would be minutes if it grew with
    // the square of the length.
    const worked = () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    }
    const before = worked()
    for (const part of ['; ', '=', '"', ', ', '\\"', 'a=";', ' \t'])
      parsePrefer(`wait${part.repeat(200_000)}`)
    expect(worked() - before).toBeLessThan(5000)
  })
})

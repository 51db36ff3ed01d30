import { describe, expect, test } from 'vitest'
import { ago, compact, duration, lastLine, percent, perSecond } from '../src/parts/format.ts'
import { niceCeiling, plotOf } from '../src/parts/plot.ts'

describe('numbers', () => {
  test.each([
    [0, 0, '–'],
    [0, 10, '0%'],
    [1, 1000, '<1%'],
    [999, 1000, '99%'],
    [1000, 1000, '100%'],
    [355, 1000, '36%'],
  ])('show a share in percent: %i of %i is %s', (part, total, words) => {
    expect(percent(part, total)).toBe(words)
  })

  test('are exact while they are small', () => {
    expect([compact(9999), compact(12_345), compact(12_345_678)]).toEqual(['9,999', '12.3K', '12.3M'])
    expect([perSecond(null), perSecond(0), perSecond(2.26), perSecond(250)]).toEqual(['–', '0', '2.3', '250'])
  })
})

describe('a reason', () => {
  test('is shown by its last line with text', () => {
    expect(lastLine("Traceback:\n  in load\nKeyError: 'price'\n\n  \n")).toBe("KeyError: 'price'")
    expect([lastLine('locked'), lastLine('\n')]).toEqual(['locked', '\n'])
  })
})

describe('times', () => {
  test.each([
    [0, '0 s'],
    [59, '59 s'],
    [60, '1 min'],
    [189, '3 min 9 s'],
    [1800, '30 min'],
    [12_000, '3 h 20 min'],
    [187_200, '2 d 4 h'],
  ])('show a duration in its two largest units: %i seconds are %s', (seconds, words) => {
    expect(duration(seconds)).toBe(words)
  })

  test('are never in the future, even with a slow clock', () => {
    const now = Date.parse('2026-03-01T12:00:00Z')
    expect(ago('2026-03-01T12:00:05Z', now)).toBe('just now')
    expect(ago('2026-03-01T11:59:20Z', now)).toBe('40 s ago')
  })
})

describe('a chart', () => {
  test('has a scale of round numbers that contains every value', () => {
    for (const value of [0, 3, 11, 149, 151, 999, 420_000])
      expect(niceCeiling(value)).toBeGreaterThanOrEqual(value)
    expect([niceCeiling(0), niceCeiling(11), niceCeiling(420_000)]).toEqual([10, 15, 500_000])
  })

  test('shows only known values', () => {
    const { line } = plotOf([null, null, 5, 10], { width: 300, height: 104, ceiling: 10 })
    expect(line).toBe('M200.0 54.0L300.0 4.0')
    const broken = plotOf([5, 10, null, 10], { width: 300, height: 104, ceiling: 10 })
    expect(broken.line).toBe('M0.0 54.0L100.0 4.0M300.0 4.0')
    expect(plotOf([null], { width: 1, height: 1, ceiling: 1 })).toEqual({ line: '', area: '' })
  })
})

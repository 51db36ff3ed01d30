import { expect, test } from 'vitest'
import { ahead, count, counted, duration, rounded, since } from './numbers.ts'

test.each([
  [0, '0ms'],
  [0.0174, '17ms'],
  [1, '1s'],
  [1.46, '1.5s'],
  [59.6, '1m'],
  [95, '1m 35s'],
  [3600, '1h'],
  [3725, '1h 2m'],
  [90_061, '1d 1h'],
])('%d seconds are written as %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text)
})

test('numbers, counts and times are formatted for people', () => {
  expect(count(1234567)).toBe('1,234,567')
  expect(rounded(1234567)).toBe('1.23M')
  expect(counted(1, 'lease')).toBe('1 lease')
  expect(counted(0, 'lease')).toBe('0 leases')
  expect(since('2026-03-01T12:00:00.000Z', Date.parse('2026-03-01T12:01:30.000Z'))).toBe('1m 30s ago')
  expect(since('2026-03-01T12:00:00.000Z', Date.parse('2026-03-01T11:00:00.000Z'))).toBe('0ms ago')
  expect(ahead('2026-03-01T12:00:00.000Z', Date.parse('2026-03-01T11:58:30.000Z'))).toBe('in 1m 30s')
  expect(ahead('2026-03-01T12:00:00.000Z', Date.parse('2026-03-01T12:00:00.000Z'))).toBe('now')
})

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  noteDone,
  recentPace,
  smoothSeries,
  stopWatching,
  watchThroughput,
} from '../src/service/throughput.ts'

/** Each test has an hour of its own: what others saw is long forgotten. */
let begin = Date.parse('2026-03-01T12:00:00.300Z')

const at = (seconds: number) => {
  vi.setSystemTime(begin + seconds * 1000)
  return Date.now()
}

beforeEach(() => {
  begin += 3_600_000
  vi.useFakeTimers({ toFake: ['Date'] })
  at(0)
})

afterEach(() => {
  stopWatching()
  vi.useRealTimers()
})

describe('the pace', () => {
  test('is not known while nobody watches', () => {
    noteDone(100)
    expect(recentPace(at(60))).toBeNull()
    expect(smoothSeries(at(60)).every((value) => value === null)).toBe(true)
  })

  test('is not known before two seconds were watched from beginning to end', () => {
    watchThroughput()
    at(2.5)
    noteDone(30)
    expect(recentPace(at(3))).toBeNull()
    at(3.5)
    noteDone(50)
    expect(recentPace(at(4))).toBe(40)
  })

  test('leaves out what is told late of the time before', () => {
    watchThroughput()
    noteDone(1_000_000)
    expect(recentPace(at(4))).toBe(0)
    expect(Math.max(...smoothSeries(at(4)).filter((value) => value !== null))).toBe(0)
  })

  test('is not known without the connection, and begins anew with it', () => {
    watchThroughput()
    at(5)
    noteDone(100)
    stopWatching()
    expect(recentPace(at(6))).toBeNull()
    noteDone(100_000)
    watchThroughput()
    noteDone(100_000)
    expect(recentPace(at(7))).toBeNull()
    expect(recentPace(at(10))).toBe(0)
  })

  test('that was seen stays on the chart, with a gap where nobody could see', () => {
    watchThroughput()
    for (const second of [2, 3, 4, 5]) {
      at(second)
      noteDone(10)
    }
    at(6)
    stopWatching()
    at(8)
    watchThroughput()
    noteDone(100_000)
    expect(smoothSeries(at(12)).slice(-11)).toEqual([null, 10, 10, 10, 10, null, null, null, null, 0, 0])
  })
})

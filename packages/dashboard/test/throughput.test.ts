import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { noteDone, recentPace, stopWatching, watchThroughput } from '../src/service/throughput.ts'

/** Each test has its own hour, so that earlier samples have expired. */
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

describe('the throughput', () => {
  test('is unknown without a connection', () => {
    noteDone(100)
    expect(recentPace(at(60))).toBeNull()
  })

  test('is unknown before two complete seconds', () => {
    watchThroughput()
    at(2.5)
    noteDone(30)
    expect(recentPace(at(3))).toBeNull()
    at(3.5)
    noteDone(50)
    expect(recentPace(at(4))).toBe(40)
  })

  test('leaves out late reports of an earlier time', () => {
    watchThroughput()
    noteDone(1_000_000)
    expect(recentPace(at(4))).toBe(0)
  })

  test('is unknown while disconnected, and starts again with the connection', () => {
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
})

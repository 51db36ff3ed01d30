import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  noteDone,
  recentPace,
  smoothSeries,
  stopWatching,
  watchThroughput,
} from '../src/service/throughput.ts'

const BEGIN = Date.parse('2026-03-01T12:00:00.300Z')

const at = (seconds: number) => {
  vi.setSystemTime(BEGIN + seconds * 1000)
  return Date.now()
}

beforeEach(() => {
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

  test('is forgotten with the connection, and begins anew', () => {
    watchThroughput()
    at(5)
    noteDone(100)
    stopWatching()
    expect(recentPace(at(6))).toBeNull()
    watchThroughput()
    expect(recentPace(at(7))).toBeNull()
    expect(recentPace(at(10))).toBe(0)
  })
})

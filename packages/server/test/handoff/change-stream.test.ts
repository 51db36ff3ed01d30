import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ChangeStream } from '../../src/handoff/change-stream.ts'
import type { Store } from '../../src/handoff/store.ts'

const TICK = 400
const parked = { taskId: 'a', level: 0, index: 1, spelling: null, reason: 'broken', attempts: 5 }

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('changes are reported also when the instances cannot be read', async () => {
  const away = new Error('away')
  const failed: unknown[] = []
  const kinds: string[] = []
  let position = 0
  const store = {
    changes: async () => {
      position += 1
      return {
        next: String(position),
        missed: false,
        now: 0,
        tasks: [],
        parked: position === 1 ? [parked] : [],
      }
    },
    instances: async () => {
      throw away
    },
  } as unknown as Store
  const events = new ChangeStream(store, (error) => failed.push(error))
  const stop = events.watch(null, ({ events: of }) => kinds.push(...of.map(({ kind }) => kind)))
  await vi.advanceTimersByTimeAsync(TICK)
  stop()
  expect(kinds).toEqual(['parked'])
  expect(failed).toEqual([away])
})

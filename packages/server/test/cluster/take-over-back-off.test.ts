import { describe, expect, test } from 'vitest'
import type { LedRow } from '../../src/cluster/leader-link.ts'
import { TakeOverBackOff } from '../../src/cluster/take-over-back-off.ts'

const leader = { nodeId: 'other', url: 'http://other' }
const row: LedRow = { term: 't', leader, clusterId: 'c', secret: 's', now: 0, last: 1 }

/** A leader as the database shows it, second by second. */
function watching(rowAt: (second: number) => LedRow, random = () => 1) {
  let second = 0
  const backOff = new TakeOverBackOff({
    readLeaderRow: async () => rowAt(second),
    pause: async (millis) => {
      second += millis / 1000
    },
    random,
  })
  const waits = async () => {
    second = 0
    const may = await backOff.mayTakeOver(rowAt(0))
    return { may, second }
  }
  return { backOff, waits }
}

const atWork = (second: number): LedRow => ({ ...row, last: 1 + second })

describe('a node that cannot reach the leader', () => {
  test('takes over at once if it was not deposed', async () => {
    expect(await watching(atWork).waits()).toEqual({ may: true, second: 0 })
  })

  test('waits while a leader that deposed it is working: longer each time, up to a minute', async () => {
    const { backOff, waits } = watching(atWork)
    const waited: number[] = []
    for (let time = 1; time <= 6; time += 1) {
      backOff.deposed()
      waited.push((await waits()).second)
    }
    expect(waited).toEqual([5, 10, 20, 40, 60, 60])
  })

  test('waits for a random part of that time, so that one of two nodes yields', async () => {
    const { backOff, waits } = watching(atWork, () => 0)
    for (let time = 1; time <= 5; time += 1) backOff.deposed()
    expect(await waits()).toEqual({ may: true, second: 30 })
  })

  test('takes over from a leader that has stopped working', async () => {
    const { backOff, waits } = watching((second) => ({ ...row, last: Math.min(second, 4) }))
    for (let time = 1; time <= 5; time += 1) backOff.deposed()
    expect(await waits()).toEqual({ may: true, second: 7 })
  })

  test('checks again when there is a new leader', async () => {
    const { backOff, waits } = watching((second) => ({
      ...atWork(second),
      term: second < 2 ? 't' : 'u',
    }))
    backOff.deposed()
    expect(await waits()).toEqual({ may: false, second: 2 })
  })

  test('no longer waits after it has followed', async () => {
    const { backOff, waits } = watching(atWork)
    backOff.deposed()
    backOff.followed()
    expect(await waits()).toEqual({ may: true, second: 0 })
  })
})

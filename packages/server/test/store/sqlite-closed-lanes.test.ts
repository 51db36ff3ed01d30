import type { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import type { ControlOrder } from '../../src/handoff/rules/control.ts'
import type { HandOffBatch } from '../../src/handoff/store.ts'
import { DataFolder } from '../../src/store/sqlite/folder.ts'
import { STEP } from '../../src/store/sqlite/lanes.ts'
import { Session } from '../../src/store/sqlite/session.ts'
import { callBackOrder, leaseOf, nameOf, pullOrder, settlement, some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'

let db: DatabaseSync
let session: Session

beforeEach(async () => {
  db = new DataFolder(await testFolder()).open()
  session = new Session(db, testPolicy, () => true)
})

afterEach(() => {
  const findings = session.verbs.audit(undefined, 0)
  db.close()
  expect(findings).toEqual([])
})

const handOff = (batch: Partial<HandOffBatch>) =>
  session.verbs.handOff({ settles: [], renews: [], undos: [], callBacks: [], pulls: [], ...batch }, 0)

const pull = (batch = 1) => {
  const { pulls, readied } = handOff({ pulls: [pullOrder({ batch })] })
  return { names: (pulls[0]?.partitions ?? []).map(nameOf), readied }
}

/** Of each level a few are ready at once. */
const callBack = (taskId: string, levels: number, each: number, first = 0) => {
  const partitions = Array.from({ length: levels }, (_, level) => some(first + level, each)).flat()
  handOff({ callBacks: [callBackOrder(taskId, partitions)] })
}

const rowsIn = (...states: string[]): number =>
  db
    .prepare(
      `SELECT count(*) AS n FROM partition WHERE state IN (${states.map((state) => `'${state}'`).join()})`,
    )
    .get()?.['n'] as number

/** How many rows are taken out of the reach of pulls. */
const takenOut = (work: () => unknown): number => {
  const before = rowsIn('held', 'cancelled')
  work()
  return rowsIn('held', 'cancelled') - before
}

const closings: readonly (readonly [string, ControlOrder])[] = [
  ['paused', { verb: 'pause', taskId: 'many' }],
  ['cancelled', { verb: 'cancel', taskId: 'many' }],
  ['put behind a barrier', { verb: 'level-barrier', taskId: 'many', enabled: true }],
]

describe.each(closings)('a task of many levels that was just %s', (_how, order) => {
  test('costs a transaction no more than a step, and pulls see past it', () => {
    callBack('many', 1000, 8, 1)
    callBack('other', 1, 3, 2000)
    // The barrier has something to wait for.
    callBack('many', 1, 1)
    expect(pull().names).toEqual(['many-0-0'])
    // One step only: the rest is in front of every pull.
    expect(takenOut(() => session.verbs.control(order, 0))).toBeLessThanOrEqual(STEP)
    for (const index of [0, 1, 2])
      expect(takenOut(() => expect(pull().names).toEqual([`other-2000-${index}`]))).toBeLessThanOrEqual(STEP)
    expect(rowsIn('ready')).toBeGreaterThan(0)
    expect(pull(100).names).toEqual([])
  })

  test('costs whoever settles in many of its levels no more than a step', () => {
    callBack('many', 1, 1)
    callBack('many', 300, 8, 1)
    const { pulls } = handOff({ pulls: [pullOrder({ batch: 2401 })] })
    const settle = (meant: (index: number) => boolean, outcome: 'done' | 'released') => {
      const leases = (pulls[0]?.partitions ?? []).filter(({ level, index }) => level > 0 && meant(index))
      const settlements = leases.map(({ lease }) => ({
        lease: leaseOf(lease?.id ?? ''),
        order: settlement({ outcome }),
      }))
      handOff({ settles: [{ instance: null, settlements }] })
    }
    // One of each level is under way, the others wait for it to close.
    settle((index) => index > 0, 'released')
    session.verbs.control(order, 0)
    expect(takenOut(() => settle((index) => index === 0, 'done'))).toBeLessThanOrEqual(STEP)
  })
})

describe('more in the way than one pull may see past', () => {
  /** Looks that were cut short before one found something. */
  const looksUntil = (name: string): number => {
    for (let looks = 0; ; looks += 1) {
      const { names, readied } = pull()
      // So that whoever waits looks again.
      expect({ names, readied }).toEqual({
        names: names.length === 0 ? [] : [name],
        readied: 1 - names.length,
      })
      if (names.length > 0) return looks
    }
  }

  beforeEach(() => {
    callBack('many', 6000, 4)
    callBack('last', 1, 2, 9000)
    session.verbs.control({ verb: 'pause', taskId: 'many' }, 0)
  })

  test('is worth another look, and each goes on where the one before ended, whatever comes between', () => {
    expect(pull()).toEqual({ names: [], readied: 1 })
    session.verbs.control({ verb: 'pause', taskId: 'many' }, 0)
    session.verbs.tidy({ retentionMillis: 0, forgetInstancesMillis: 0, forgetEndedNodesMillis: 0 }, 0)
    expect(looksUntil('last-9000-0')).toBeLessThan(3)
  })

  test('hides nothing that becomes ready before the place where the last look ended', () => {
    looksUntil('last-9000-0')
    callBack('amid', 1, 6, 3000)
    const give = (outcome: 'done' | 'released' | 'failed') => {
      const { pulls } = handOff({ pulls: [pullOrder()] })
      const [given] = pulls[0]?.partitions ?? []
      const lease = leaseOf(given?.lease?.id ?? '')
      const settlements = [{ lease, order: settlement({ outcome, retryAfterMillis: 0 }) }]
      handOff({ settles: [{ instance: null, settlements }] })
      return given && nameOf(given)
    }
    expect(give('released')).toBe('amid-3000-0')
    expect(give('failed')).toBe('amid-3000-0')
    looksUntil('amid-3000-1')
    session.verbs.sweep({ limit: 10, expireLeases: false }, 0)
    const left = Array.from({ length: 5 }, () => give('done'))
    expect(left.toSorted()).toEqual([
      'amid-3000-0',
      'amid-3000-2',
      'amid-3000-3',
      'amid-3000-4',
      'amid-3000-5',
    ])
    looksUntil('last-9000-1')
  })
})

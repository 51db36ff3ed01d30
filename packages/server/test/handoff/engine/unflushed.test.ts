import { expect, test } from 'vitest'
import { type Entry, imageOfStatus } from '../../../src/handoff/engine/entry.ts'
import { Unflushed } from '../../../src/handoff/engine/images.ts'
import { type PartitionStatus, untouched } from '../../../src/handoff/stored.ts'

const entry = (...partitions: [id: number, change: Partial<PartitionStatus>][]): Entry => ({
  tasks: [],
  lanes: [],
  levels: [],
  partitions: partitions.map(([id, change]) => [id, imageOfStatus({ ...untouched(), ...change })]),
  keys: [],
  pace: [],
  paceOver: [],
  ranges: [],
  tables: [],
  produced: [],
  instances: [],
  nextIds: null,
  outbox: null,
})

const states = (flushable: ReturnType<Unflushed['takeAll']>) =>
  flushable && {
    upTo: flushable.upTo,
    states: [...flushable.images.partitions].map(([id, status]) => [id, status?.state]),
  }

test('a partition that is finished soon after it was leased is written once', () => {
  const unflushed = new Unflushed()
  unflushed.add(entry([1, { state: 'leased' }], [2, { state: 'leased' }]), 1)
  expect(unflushed.takeOlder()).toBeNull()
  unflushed.add(entry([1, { state: 'done' }]), 2)
  // Entry 1 goes without its image of the first, which entry 2 has.
  expect(states(unflushed.takeOlder())).toEqual({ upTo: 1, states: [[2, 'leased']] })
  expect(states(unflushed.takeOlder())).toEqual({ upTo: 2, states: [[1, 'done']] })
  expect(unflushed.takeOlder()).toBeNull()
})

test('all of it: the last image of each row', () => {
  const unflushed = new Unflushed()
  unflushed.add(entry([1, { state: 'leased' }], [2, { state: 'leased' }]), 1)
  unflushed.takeOlder()
  unflushed.add(entry([1, { state: 'done' }]), 2)
  expect(states(unflushed.takeAll())).toEqual({
    upTo: 2,
    states: [
      [1, 'done'],
      [2, 'leased'],
    ],
  })
  expect(unflushed.takeAll()).toBeNull()
})

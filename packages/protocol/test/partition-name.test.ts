import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parsePartitionName, partitionName } from '../src/index.ts'

describe('a partition name', () => {
  test('is the task id, the group and the index, joined by hyphens', () => {
    expect(partitionName('orders', 0, 7)).toBe('orders-0-7')
    expect(parsePartitionName('orders', 'orders-0-7')).toEqual({ level: 0, index: 7, canonical: true })
  })

  test('is read with its task id, which may contain hyphens and digits itself', () => {
    expect(parsePartitionName('a-1', 'a-1-2-3')).toEqual({ level: 2, index: 3, canonical: true })
    expect(parsePartitionName('a', 'a-1-2-3')).toBeUndefined()
    expect(parsePartitionName('a-1-2', 'a-1-2-3')).toBeUndefined()
  })

  test('with leading zeros means the same partition, and is not canonical', () => {
    expect(parsePartitionName('a', 'a-0-01')).toEqual({ level: 0, index: 1, canonical: false })
    expect(parsePartitionName('a', 'a-00-1')).toEqual({ level: 0, index: 1, canonical: false })
    expect(parsePartitionName('a', 'a-0-0')).toEqual({ level: 0, index: 0, canonical: true })
  })

  test.each([
    'a',
    'a-',
    'a-0',
    'a-0-',
    'a--1',
    'a-0-1-',
    'a-0-x',
    'a-+0-1',
    'a-0-1.0',
    'a-0-1e3',
    'a-0- 1',
    'a-0-١',
    'b-0-1',
    'a-9007199254740992-1',
    'a-0-9007199254740992',
    `a-0-${'9'.repeat(400)}`,
    '',
  ])('of %j cannot be read for the task a', (name) => {
    expect(parsePartitionName('a', name)).toBeUndefined()
  })

  test('can be read back whatever the task id, level and index', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.maxSafeNat(), fc.maxSafeNat(), (taskId, level, index) => {
        const name = partitionName(taskId, level, index)
        expect(parsePartitionName(taskId, name)).toEqual({ level, index, canonical: true })
      }),
    )
  })
})

import { expect, test } from 'vitest'
import { TableField } from './table-field.ts'

const inProgram = {
  taskId: 'orders',
  computeTableName: 'results.orders',
  partition_name: 'orders-0-0',
  record_count: 5,
  priorityLevel: 0,
}
const { computeTableName, ...others } = inProgram
const onWire = { warehouseTable: computeTableName, ...others }

test('the wire and the program have different names', () => {
  const field = new TableField('warehouseTable')
  expect(field.toWire(inProgram)).toEqual(onWire)
  expect(field.toWire(onWire)).toBe(onWire)
  expect(field.fromWire(onWire as never)).toEqual(inProgram)
  expect(field.describe(inProgram)).toEqual(onWire)
  const pulled = { ...inProgram, region: 'eu', lease: null, traceparent: 'trace' }
  expect(field.describe(pulled)).toEqual({ ...onWire, region: 'eu' })
  expect(Object.keys(field.toWire(inProgram) as object)).toEqual([
    'taskId',
    'warehouseTable',
    'partition_name',
    'record_count',
    'priorityLevel',
  ])
})

test('an invalid descriptor is left to the check', () => {
  const field = new TableField('warehouseTable')
  for (const value of [null, 5, 'x', [], {}]) expect(field.toWire(value)).toBe(value)
})

test('an unknown name is recognized when there is only one candidate', () => {
  expect(new TableField().fromWire({ ...onWire, lease: null } as never)).toMatchObject({ computeTableName })
  const ambiguous = { ...onWire, other: 'text' }
  expect(new TableField().fromWire(ambiguous as never)).toBe(ambiguous)
})

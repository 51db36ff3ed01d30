import { checkCallBack } from '@baton/protocol'
import { expect, test } from 'vitest'
import { descriptor } from '../../../client/test/support/descriptors.ts'
import { tableFieldHint } from './check.ts'

const { computeTableName, ...without } = descriptor('orders', 0, 0)

/** The hint if the check and the command have these names for the table field. */
function hint(descriptors: readonly object[], checked = 'computeTableName', expected = checked) {
  const found = checkCallBack(descriptors, { tableField: checked })
  return tableFieldHint(found.ok ? [] : found.violations, expected, (position) => descriptors[position])
}

test.each([
  ['another name', [{ ...without, warehouseTable: computeTableName }], 'warehouseTable'],
  [
    'another name, escaped in pointers',
    [{ ...without, 'warehouse/~table': computeTableName }],
    'warehouse/~table',
  ],
])('a hint names the table field if a file has %s for it', (_, descriptors, name) => {
  expect(hint(descriptors)).toBe(
    `If the service uses the name ${JSON.stringify(name)} for the table field, set --table-field or BATON_TABLE_FIELD.`,
  )
})

test('a hint names the table field of a service that uses another name', () => {
  const refused = hint([descriptor('orders', 0, 0)], 'warehouseTable', 'computeTableName')
  expect(refused).toContain('uses the name "warehouseTable" for the table field')
})

test.each([
  ['only lacks it', [without]],
  ['has another field that is no table', [{ ...without, checksum: 'a91f' }]],
  ['has another field that is a number', [{ ...without, ratio: 0.5 }]],
  ['has another field with more dots', [{ ...without, host: 'a.example.org' }]],
  ['has a field too many', [{ ...descriptor('orders', 0, 0), warehouseTable: 'x' }]],
  ['misspells it', [{ ...without, computeTablename: computeTableName }]],
  ['has the two faults in two places', [without, { ...descriptor('orders', 0, 1), warehouseTable: 'x' }]],
  ['lacks another field', [{ computeTableName, ...without, record_count: undefined, rows: 3 }]],
])('no hint is given if a file %s', (_, descriptors) => {
  expect(hint(JSON.parse(JSON.stringify(descriptors)))).toBeUndefined()
})

import type { CalledBackPartition } from '@baton/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addPartitions, columnsOf } from '../../src/http/bodies/call-back-reader.ts'

const count = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const partition: fc.Arbitrary<CalledBackPartition> = fc.record(
  {
    level: count,
    index: count,
    recordCount: count,
    computeTableName: fc.constantFrom('sales.orders', 'sales.täglich', 'a.b'),
    spelling: fc.option(fc.string(), { nil: null }),
    extraFields: fc.string(),
  },
  { requiredKeys: ['level', 'index', 'recordCount', 'computeTableName', 'spelling'] },
)

test('partitions sent as columns are decoded unchanged and in order', () => {
  fc.assert(
    fc.property(fc.array(partition), fc.array(partition), (before, sent) => {
      const received = [...before]
      addPartitions(structuredClone(columnsOf(sent)), received)
      expect(received).toEqual([...before, ...sent])
    }),
  )
})

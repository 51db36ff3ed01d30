import { describeModel } from '../handoff/model-properties.ts'
import { memoryHarness } from './memory-harness.ts'

describeModel(memoryHarness())
/** With so little cache that nearly everything is evicted and read again. */
describeModel(
  memoryHarness({
    partitions: 4,
    keys: 2,
    flushRows: 5,
    flushEntries: 3,
    largeCallBack: 300,
    piece: 40,
  }),
  { crowded: 40, long: 5 },
)

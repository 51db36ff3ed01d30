import { describeStore } from './conformance/index.ts'
import { memoryHarness } from './memory-harness.ts'

describeStore(memoryHarness())

import { describeStore } from '../store/conformance/index.ts'
import { memoryHarness } from './memory-harness.ts'

describeStore(memoryHarness())

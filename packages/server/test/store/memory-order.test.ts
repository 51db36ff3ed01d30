import { followsPlainOrder } from './conformance/plain-order.ts'
import { memoryHarness } from './memory-harness.ts'

followsPlainOrder(memoryHarness(), 100)

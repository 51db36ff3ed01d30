import { followsPlainOrder } from './conformance/plain-order.ts'
import { postgresHarness } from './postgres-harness.ts'

followsPlainOrder(postgresHarness(), 15)

import { followsPlainOrder } from './conformance/plain-order.ts'
import { postgresHarness } from './postgres-harness.ts'

followsPlainOrder(postgresHarness(), 15)
followsPlainOrder(postgresHarness('whenever-possible'), 15)

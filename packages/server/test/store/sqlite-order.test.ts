import { followsPlainOrder } from './conformance/plain-order.ts'
import { sqliteHarness } from './sqlite-harness.ts'

followsPlainOrder(sqliteHarness, 40)

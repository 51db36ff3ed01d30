import type { Metric } from './metric.ts'
import { boundMetrics } from './metrics-of-bounds.ts'
import { handOffMetrics } from './metrics-of-hand-off.ts'
import { nodeMetrics } from './metrics-of-node.ts'
import { requestMetrics } from './metrics-of-requests.ts'
import { scaleMetrics } from './metrics-of-scale.ts'
import { backlogMetrics, storeMetrics } from './metrics-of-store.ts'
import { webhookMetrics } from './metrics-of-webhooks.ts'

/** Every metric there is. A test holds the table in docs/operations.md against it. */
export const metrics: readonly Metric[] = [
  ...requestMetrics,
  ...boundMetrics,
  ...handOffMetrics,
  ...storeMetrics,
  ...nodeMetrics,
  ...webhookMetrics,
  ...backlogMetrics,
  ...scaleMetrics,
]

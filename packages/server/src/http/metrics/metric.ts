import type { StoreReading } from '../../handoff/counts/store-readings.ts'
import type { HandOff } from '../../handoff/hand-off.ts'
import type { AdmissionBudget } from '../admission/budget.ts'
import type { RequestCounts } from '../requests/request-counts.ts'
import type { Webhooks } from '../service.ts'
import type { MetricHead, Sample } from './metric-text.ts'
import type { ProcessHealth } from './process-health.ts'

/** Where the numbers come from. */
export interface MetricSources {
  readonly handOff: HandOff
  readonly requests: RequestCounts
  readonly health: ProcessHealth
  readonly webhooks: Webhooks
  readonly budget: AdmissionBudget
  readonly store: StoreReading
  readonly scaleTargetSeconds: number
}

export interface Metric extends MetricHead {
  /** None: what it tells of is not known now. */
  readonly samples: (from: MetricSources) => Iterable<Sample>
}

type Read = (from: MetricSources) => number | Iterable<Sample>

const metric =
  (type: Metric['type']) =>
  (name: string, labels: readonly string[], meaning: string, read: Read): Metric => {
    const samples = (from: MetricSources): Iterable<Sample> => {
      const value = read(from)
      return typeof value === 'number' ? [[[], value]] : value
    }
    return { name, type, labels, meaning, samples }
  }
export const counter = metric('counter')
export const gauge = metric('gauge')
export const histogram = metric('histogram')

/** A sample for each key. */
export const by = (counts: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(counts).map(([key, count]) => [[key], count])

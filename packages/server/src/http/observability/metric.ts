import { Histogram } from '../../handoff/counts/counts.ts'
import type { StoreReading } from '../../handoff/counts/store-readings.ts'
import type { HandOff } from '../../handoff/hand-off.ts'
import type { ClientLimiter } from '../limits/limiter.ts'
import type { Webhooks } from '../route-context.ts'
import type { RequestCounts } from './answered-requests.ts'

/** The text format of Prometheus, which all compatible systems read. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Label values, in the order of the label names, and the value of the sample. */
export type Sample = readonly [labels: readonly string[], value: number | Histogram]

interface MetricHead {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly meaning: string
}

/** One metric with all of its samples; empty when there are none. */
export function metricText({ name, type, labels, meaning }: MetricHead, samples: Iterable<Sample>): string {
  let text = ''
  for (const [values, value] of samples) {
    const pairs = labels.map((label, at) => `${label}="${escaped(values[at] ?? '')}"`)
    if (value instanceof Histogram) text += histogramLines(name, pairs, value)
    else text += line(name, pairs, value)
  }
  return text === ''
    ? ''
    : `# HELP ${name} ${meaning.replaceAll('\\', '\\\\')}\n# TYPE ${name} ${type}\n${text}`
}

/** Buckets are cumulative. */
function histogramLines(name: string, pairs: readonly string[], { bounds, counts, sum }: Histogram): string {
  let lines = ''
  let count = 0
  for (const [at, bound] of [...bounds, '+Inf'].entries()) {
    count += counts[at] ?? 0
    lines += line(`${name}_bucket`, [...pairs, `le="${bound}"`], count)
  }
  return `${lines}${line(`${name}_sum`, pairs, sum)}${line(`${name}_count`, pairs, count)}`
}

function line(name: string, pairs: readonly string[], value: number): string {
  const labels = pairs.length === 0 ? '' : `{${pairs.join(',')}}`
  return `${name}${labels} ${value}\n`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

export interface MetricSources {
  readonly handOff: HandOff
  readonly requests: RequestCounts
  readonly eventLoopDelay: Histogram
  readonly webhooks: Webhooks
  readonly limiter: ClientLimiter
  readonly store: StoreReading
  readonly scaleTargetSeconds: number
}

export interface Metric extends MetricHead {
  /** Empty when the value is currently unknown. */
  readonly samples: (from: MetricSources) => Iterable<Sample>
}

type Read = (from: MetricSources) => number | Iterable<Sample>

/** `head` is the name, with the labels in braces if there are any. */
const metric =
  (type: Metric['type']) =>
  (head: string, meaning: string, read: Read): Metric => {
    const [name = '', labels = ''] = head.split(/[{}]/)
    const samples = (from: MetricSources): Iterable<Sample> => {
      const value = read(from)
      return typeof value === 'number' ? [[[], value]] : value
    }
    return { name, type, labels: labels === '' ? [] : labels.split(','), meaning, samples }
  }
export const counter = metric('counter')
export const gauge = metric('gauge')
export const histogram = metric('histogram')

export const by = (counts: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(counts).map(([key, count]) => [[key], count])

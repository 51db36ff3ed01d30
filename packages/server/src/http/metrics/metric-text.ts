import { Distribution } from '../../handoff/counts/distribution.ts'

/** As Prometheus has read it since its beginnings, and everything that reads its format. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The values of the labels, in the order of their names, and what stands there. */
export type Sample = readonly [labels: readonly string[], value: number | Distribution]

export interface MetricHead {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly meaning: string
}

/** One metric with all of its samples. Without samples there is nothing to tell, and nothing is told. */
export function metricText({ name, type, labels, meaning }: MetricHead, samples: Iterable<Sample>): string {
  let text = ''
  for (const [values, value] of samples) {
    const pairs = labels.map((label, at) => `${label}="${escaped(values[at] ?? '')}"`)
    if (value instanceof Distribution) text += histogramLines(name, pairs, value)
    else text += line(name, pairs, value)
  }
  return text === ''
    ? ''
    : `# HELP ${name} ${meaning.replaceAll('\\', '\\\\')}\n# TYPE ${name} ${type}\n${text}`
}

/** Each bucket holds those before it. */
function histogramLines(
  name: string,
  pairs: readonly string[],
  { bounds, counts, sum }: Distribution,
): string {
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

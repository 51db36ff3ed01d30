/** The events on one level that matter for fairness. */
export type FairnessEvent =
  /** The task has, or no longer has, eligible partitions that wait for a first hand-out. */
  | { readonly kind: 'work'; readonly task: string; readonly has: boolean }
  /** A first hand-out, at its cost in records. */
  | { readonly kind: 'given'; readonly task: string; readonly cost: number }

/** At least one, at most a thousand million: the bounds of the design, deliberately repeated here. */
export const costOf = (records: number): number => Math.min(Math.max(records, 1), 1_000_000_000)

/**
 * Over any interval in which two tasks both have work, the records handed to each differ by at most the sum
 * of their largest partitions. Returns the pairs of tasks that violate this in some interval.
 */
export function unfairness(events: readonly FairnessEvent[], largest: ReadonlyMap<string, number>): string[] {
  const tasks = [...largest.keys()]
  return tasks.flatMap((one, position) =>
    tasks.slice(position + 1).flatMap((other) => {
      const widest = widestDifference(events, one, other)
      const allowed = (largest.get(one) ?? 0) + (largest.get(other) ?? 0)
      return widest <= allowed ? [] : [`${one} and ${other} differ by ${widest}, allowed are ${allowed}`]
    }),
  )
}

/**
 * The largest difference over any interval: the range of the running difference within one continuous period.
 */
function widestDifference(events: readonly FairnessEvent[], one: string, other: string): number {
  const working = new Set<string>()
  let widest = 0
  let [difference, lowest, highest] = [0, 0, 0]
  for (const event of events) {
    if (event.kind === 'work') {
      if (event.has) working.add(event.task)
      else working.delete(event.task)
      const both = working.has(one) && working.has(other)
      if (!both) [difference, lowest, highest] = [0, 0, 0]
    } else if (working.has(one) && working.has(other)) {
      if (event.task === one) difference += event.cost
      if (event.task === other) difference -= event.cost
      lowest = Math.min(lowest, difference)
      highest = Math.max(highest, difference)
      widest = Math.max(widest, highest - lowest)
    }
  }
  return widest
}

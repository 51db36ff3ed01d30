import type { LevelView, StateCounts } from '@baton/protocol'
import { partitionStates } from '@baton/protocol/core'
import { exact, percent } from './numbers.ts'
import { measureOf, Segments, SplitBar, splitInWords } from './split-bar.tsx'

/** More levels would be too narrow to distinguish. The last part then combines the rest. */
const LEVELS_SHOWN = 10
/** The minimum width of a level, so that it is visible and can be hovered. */
const SMALLEST_SHARE = 0.04

interface Part {
  readonly name: string
  readonly counts: StateCounts
}

/** The progress of a task: a bar for each level, as wide as its share of the records, divided by state. */
export function LevelBar({
  whole,
  levels,
}: {
  whole: StateCounts
  levels: readonly LevelView[] | undefined
}) {
  if (levels === undefined || levels.length < 2) return <SplitBar counts={whole} label="Progress" />
  const parts = partsOf(levels)
  const total = parts.reduce((sum, { counts }) => sum + counts.total, 0)
  return (
    <div class="level-bar" role="img" aria-label={`Progress: ${splitInWords(whole)}; ${inWords(parts)}`}>
      {parts.map(({ name, counts }) => (
        <div
          key={name}
          class="bar"
          style={{ flexGrow: Math.max(SMALLEST_SHARE, counts.total / total) * 1000 }}
          title={`${name}: ${exact(counts.done)} of ${exact(counts.total)} done`}
        >
          <Segments counts={counts} />
        </div>
      ))}
    </div>
  )
}

function inWords(parts: readonly Part[]): string {
  return parts.map(({ name, counts }) => `${name} ${percent(counts.done, counts.total)} done`).join(', ')
}

function partsOf(levels: readonly LevelView[]): Part[] {
  const byRecords = levels.some(({ records }) => records.total > 0)
  const countsOf = (level: LevelView) => (byRecords ? level.records : measureOf(level))
  const shown = levels.length > LEVELS_SHOWN ? levels.slice(0, LEVELS_SHOWN - 1) : levels
  const rest = levels.slice(shown.length)
  const parts = shown.map((level) => ({ name: `level ${level.level}`, counts: countsOf(level) }))
  if (rest.length > 0)
    parts.push({ name: `${rest.length} further levels`, counts: rest.map(countsOf).reduce(add) })
  return parts.filter(({ counts }) => counts.total > 0)
}

export function add(a: StateCounts, b: StateCounts): StateCounts {
  const sum = { ...a, total: a.total + b.total }
  for (const state of partitionStates) sum[state] = a[state] + b[state]
  return sum
}

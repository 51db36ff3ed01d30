import type { StateCounts } from '@baton/protocol'
import { exact, percent } from './numbers.ts'
import { partitionStatesAsShown, partitionStateWords } from './states.ts'

interface Counted {
  readonly records: StateCounts
  readonly partitions: StateCounts
}

/** Counts in records, or in partitions if there are no records. */
export function measureOf(of: Counted): StateCounts {
  return of.records.total > 0 ? of.records : of.partitions
}

/** The states that occur, as text: "62% done, 3% leased". */
export function splitInWords(counts: StateCounts): string {
  return partitionStatesAsShown
    .filter((state) => counts[state] > 0)
    .map((state) => `${percent(counts[state], counts.total)} ${partitionStateWords[state].toLowerCase()}`)
    .join(', ')
}

/** One bar, divided by state. */
export function SplitBar({ counts, label }: { counts: StateCounts; label: string }) {
  return (
    <div class="bar" role="img" aria-label={`${label}: ${splitInWords(counts) || 'nothing yet'}`}>
      <Segments counts={counts} />
    </div>
  )
}

export function Segments({ counts }: { counts: StateCounts }) {
  const { total } = counts
  return (
    <>
      {partitionStatesAsShown.map((state) =>
        counts[state] === 0 ? null : (
          <span
            key={state}
            class={`segment fill-${state}`}
            style={{ flexGrow: (counts[state] / total) * 1000 }}
            title={`${partitionStateWords[state]}: ${exact(counts[state])}`}
          />
        ),
      )}
    </>
  )
}

/**
 * The legend of the colours. Lists only the states that occur, including those of partitions without records.
 */
export function Legend({ of }: { of: Counted }) {
  const counts = measureOf(of)
  return (
    <ul class="legend">
      {partitionStatesAsShown.map((state) =>
        of.partitions[state] === 0 ? null : (
          <li key={state}>
            <span class={`swatch fill-${state}`} aria-hidden="true" />
            {partitionStateWords[state]} <b class="number">{exact(counts[state])}</b>
          </li>
        ),
      )}
    </ul>
  )
}

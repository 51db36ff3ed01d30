import type { PartitionState, TaskView } from '@baton/protocol'
import { refine } from '../here.ts'
import { counted } from '../parts/numbers.ts'
import { partitionStatesAsShown, partitionStateWords } from '../parts/states.ts'
import type { Route } from '../route.ts'
import { matchingCount } from './partition-rows.ts'
import { PartitionTable } from './partition-table.tsx'

type TaskRoute = Extract<Route, { page: 'task' }>

interface PanelProps {
  readonly view: TaskView
  readonly at: TaskRoute
  readonly refresh: () => void
}

/** The partitions of a task, filtered by state and level. */
export function PartitionPanel({ view, at, refresh }: PanelProps) {
  const { state, level } = at
  return (
    <section class="panel" aria-labelledby="partitions-title">
      <header class="panel-head">
        <h2 id="partitions-title">Partitions</h2>
        <p class="muted">{matchingInWords(view, at)}</p>
        <div class="filters">
          <select
            aria-label="State"
            value={state ?? ''}
            onChange={(event) =>
              refine({ ...at, state: (event.currentTarget.value || null) as PartitionState | null })
            }
          >
            <option value="">Every state</option>
            {partitionStatesAsShown.map((word) => (
              <option key={word} value={word}>
                {partitionStateWords[word]}
              </option>
            ))}
          </select>
          <select
            aria-label="Level"
            value={level === null ? '' : String(level)}
            onChange={(event) => {
              const { value } = event.currentTarget
              refine({ ...at, level: value === '' ? null : Number(value) })
            }}
          >
            <option value="">Every level</option>
            {view.levels.map((one) => (
              <option key={one.level} value={String(one.level)}>
                Level {one.level}
              </option>
            ))}
          </select>
        </div>
      </header>
      <PartitionTable key={`${view.taskId} ${state} ${level}`} view={view} at={at} refresh={refresh} />
    </section>
  )
}

function matchingInWords(view: TaskView, at: TaskRoute): string {
  return counted(matchingCount(view, at), 'partition')
}

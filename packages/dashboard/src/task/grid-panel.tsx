import type { Grid, LevelView, PartitionState, TaskView } from '@baton/protocol'
import { refine } from '../current-route.ts'
import { counted, exact } from '../parts/format.ts'
import { partitionStateWords } from '../parts/states.tsx'
import type { TaskRoute } from '../route.ts'
import { client } from '../service/connection.ts'
import { useReading } from '../service/reading.ts'

const LEVELS_SHOWN = 6
const CELLS_SHOWN = 1500

/** The state of a cell is the worst of its partitions. */
const worstFirst: readonly PartitionState[] = [
  'parked',
  'delayed',
  'leased',
  'ready',
  'held',
  'cancelled',
  'done',
]

/** Where in each level its partitions are done, leased, waiting or parked. A click lists those of a cell. */
export function GridPanel({ view, at }: { view: TaskView; at: TaskRoute }) {
  if (view.purgedAt !== null) return null
  const levels = levelsShown(view, at.level)
  const left = view.levels.length + view.levelsOmitted - levels.length
  return (
    <section class="panel" aria-labelledby="grid-title">
      <header class="panel-head">
        <h2 id="grid-title">By index</h2>
        <p class="muted">select a cell to list its partitions</p>
      </header>
      <div class="grids">
        {levels.map((level) => (
          <LevelGrid
            key={level.level}
            level={level}
            at={at}
            cells={Math.max(100, Math.floor(CELLS_SHOWN / levels.length))}
          />
        ))}
      </div>
      {left > 0 ? (
        <p class="quiet">{counted(left, 'other level')}; select one in the table above to see it here.</p>
      ) : null}
    </section>
  )
}

/** The level that is listed, or else the first ones from the lowest unfinished level on. */
function levelsShown({ levels }: TaskView, chosen: number | null): readonly LevelView[] {
  if (chosen !== null) return levels.filter(({ level }) => level === chosen)
  const unfinished = levels.findIndex(
    ({ partitions: { total, done, cancelled } }) => done + cancelled < total,
  )
  const from = Math.max(0, Math.min(unfinished, levels.length - LEVELS_SHOWN))
  return levels.slice(from, from + LEVELS_SHOWN)
}

interface LevelGridProps {
  readonly level: LevelView
  readonly at: TaskRoute
  readonly cells: number
}

function LevelGrid({ level: { level, partitions }, at, cells }: LevelGridProps) {
  const { taskId } = at
  const { loaded } = useReading(
    () => client.peek().grid(taskId, { level, cells }),
    [taskId, level, cells],
    Object.values(partitions).join(),
  )
  const grid = loaded.kind === 'there' ? loaded.value : null
  const select = ({ target }: Event) => {
    const cell = target instanceof HTMLElement ? grid?.cells[Number(target.dataset['cell'])] : undefined
    if (cell === undefined) return
    const { first, last } = cell
    refine({ ...at, level, indexes: { first, last }, name: '', holder: '', reason: '', state: null })
    document.getElementById('partitions-title')?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <div class="grid-row">
      <p class="grid-name">Level {level}</p>
      {loaded.kind === 'failed' ? <p class="quiet">{loaded.detail}</p> : null}
      {/* The filters of the list do the same with the keyboard. */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the list has filters */}
      <div class="cells" role="img" aria-label={labelOf(level, partitions)} onClick={select}>
        {grid?.cells.map((cell, place) => (
          <i
            key={cell.first}
            data-cell={place}
            class={`fill-${worstFirst.find((state) => cell.counts[state] !== undefined) ?? 'ready'}${isIn(at, level, cell) ? ' chosen' : ''}`}
            title={titleOf(cell)}
          />
        ))}
      </div>
      {grid?.sampled ? (
        <p class="quiet">
          Of {exact(grid.partitions)} partitions, parked ones and some of each cell are counted.
        </p>
      ) : null}
    </div>
  )
}

type Cell = Grid['cells'][number]

const isIn = ({ level: chosen, indexes }: TaskRoute, level: number, { first, last }: Cell): boolean =>
  chosen === level && indexes !== null && indexes.first <= last && first <= indexes.last

function titleOf({ first, last, counts }: Cell): string {
  const where = first === last ? `Index ${first}` : `Indexes ${first} to ${last}`
  const states = worstFirst.filter((state) => counts[state] !== undefined)
  if (first === last) return `${where}: ${states[0] ?? ''}`
  return `${where}: ${states.map((state) => `${exact(counts[state] ?? 0)} ${state}`).join(', ')}`
}

function labelOf(level: number, partitions: LevelView['partitions']): string {
  const states = worstFirst.filter((state) => partitions[state] > 0)
  const words = states.map(
    (state) => `${exact(partitions[state])} ${partitionStateWords[state].toLowerCase()}`,
  )
  return `Level ${level}: ${words.join(', ')}`
}

import { GRID_PARTITIONS_COUNTED } from '@baton/protocol'
import type { CellCount } from '../../disk.ts'
import { totalOf } from '../../rules/task.ts'
import type { GridCell, GridDetails, GridQuery } from '../../views/queries.ts'
import { viewState } from '../../views/view-state.ts'
import type { ViewSource } from './view-source.ts'

/** Each cell of a sample costs two look-ups. */
const MOST_CELLS_SAMPLED = 250

/** The states of one level, by cell. Of very many partitions only some are counted, and the parked ones. */
export async function readGrid(
  { disk, memory }: Pick<ViewSource, 'disk' | 'memory'>,
  query: GridQuery,
): Promise<GridDetails | null> {
  const [task] = await disk.tasksNamed([query.taskId])
  if (task === undefined || totalOf(task.partitions) === 0) return null
  const from = query.level ?? 0
  const [lane] = (await disk.lanesFrom({ task: task.id, from, having: 'any', limit: 1 })).lanes
  const { taskId, owners } = task
  const none = { task: { taskId, owners }, level: from, partitions: 0, sampled: false, cells: [] }
  if (lane === undefined || (query.level !== null && lane.level !== query.level)) return none
  const { id, tail, level } = lane
  const partitions = totalOf(lane.partitions)
  const sampled = partitions > GRID_PARTITIONS_COUNTED
  const sampledCells = Math.min(query.cells, MOST_CELLS_SAMPLED)
  const counted = await disk.countCells({
    lane: id,
    tail,
    by: sampled
      ? { kind: 'index', cells: sampledCells, each: Math.floor(GRID_PARTITIONS_COUNTED / sampledCells) }
      : { kind: 'rank', width: Math.ceil(partitions / query.cells), limit: GRID_PARTITIONS_COUNTED },
  })
  // Of several tables, those of waiting partitions are not known here.
  const isHeld = lane.mixedAfter === null && memory.order.tables.paused.has(lane.table)
  const stateOf = (state: CellCount['state']) => (isHeld && state === 'ready' ? 'held' : state)
  const cells = cellsOf(counted, (state) => viewState(task, { state: stateOf(state), level }))
  return { ...none, level, partitions, sampled, cells }
}

function cellsOf(
  counted: readonly CellCount[],
  shownAs: (state: CellCount['state']) => keyof GridCell['counts'],
): GridCell[] {
  return [...Map.groupBy(counted, ({ cell }) => cell).values()].map((parts) => {
    const counts: GridCell['counts'] = {}
    for (const { state, partitions } of parts) {
      const shown = shownAs(state)
      counts[shown] = (counts[shown] ?? 0) + partitions
    }
    return {
      first: Math.min(...parts.map(({ first }) => first)),
      last: Math.max(...parts.map(({ last }) => last)),
      counts,
    }
  })
}

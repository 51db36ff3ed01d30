import type { HandedOut } from '../../handoff/store.ts'
import type { Candidate } from './candidate.ts'
import type { Names } from './names.ts'

/** What is said of a partition to whoever gets it. */
export type Described = Pick<Candidate, 'lane' | 'idx' | 'spelling' | 'computeTable' | 'recordCount'>

export function asHandedOut(partition: Described, names: Names, lease: HandedOut['lease']): HandedOut {
  return {
    taskId: partition.lane.task.taskId,
    level: partition.lane.level,
    index: partition.idx,
    spelling: partition.spelling,
    computeTableName: names.computeTable(partition.computeTable),
    recordCount: partition.recordCount,
    lease,
  }
}

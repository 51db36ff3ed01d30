import { foundation } from './0001-foundation.ts'
import { queues } from './0002-queues.ts'
import { leasesInSets } from './0003-leases-in-sets.ts'
import { waitingByPlace } from './0004-waiting-by-place.ts'
import { keysOfPartitions } from './0005-keys-of-partitions.ts'
import { rollsByTurns } from './0006-rolls-by-turns.ts'
import { holdersOfSets } from './0007-holders-of-sets.ts'
import { notes } from './0008-notes.ts'
import { tasksWithParked } from './0009-tasks-with-parked.ts'
import { stuckTasks } from './0010-stuck-tasks.ts'
import { purging } from './0011-purging.ts'
import { entries } from './0012-entries.ts'

/**
 * In order; a schema's version is how many of them it has seen. None is ever changed after a release. A database without
 * any is made by `schema` at once.
 */
export const migrations: readonly string[] = [
  foundation,
  queues,
  leasesInSets,
  waitingByPlace,
  keysOfPartitions,
  rollsByTurns,
  holdersOfSets,
  notes,
  tasksWithParked,
  stuckTasks,
  purging,
  entries,
]

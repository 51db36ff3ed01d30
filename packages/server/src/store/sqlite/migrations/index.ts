import { foundation } from './0001-foundation.ts'
import { journal } from './0002-journal.ts'
import { journalSlots } from './0003-journal-slots.ts'
import { tasksWithParked } from './0004-tasks-with-parked.ts'
import { stuckTasks } from './0005-stuck-tasks.ts'
import { purging } from './0006-purging.ts'

/** In order, never edited once released: position n brings the schema to version n + 1. */
export const migrations: readonly string[] = [
  foundation,
  journal,
  journalSlots,
  tasksWithParked,
  stuckTasks,
  purging,
]

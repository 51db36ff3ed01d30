import type { TaskView } from '@baton/client'
import { exitCodes } from './exit-codes.ts'
import { missingText } from './show/missing.ts'
import { shown } from './show/table.ts'

export interface TaskEnding {
  readonly exitCode: number
  /** What a task that looks well has against it. */
  readonly flaw?: string
}

/** How a task ended, for whoever waited for that; undefined while it has not. */
export function endingOf(task: TaskView): TaskEnding | undefined {
  switch (task.state) {
    case 'done':
      return doneEnding(task)
    case 'stalled':
    case 'cancelled':
      return { exitCode: exitCodes.refused }
    default:
      return undefined
  }
}

/** All that was called back is done. That is not all there should be where more was expected: sealed, it cannot come. */
function doneEnding(task: TaskView): TaskEnding {
  const missing = missingText(task)
  if (missing === undefined) return { exitCode: exitCodes.ok }
  return {
    exitCode: exitCodes.refused,
    flaw: `${shown(task.taskId)} is done, but ${missing} were never called back`,
  }
}

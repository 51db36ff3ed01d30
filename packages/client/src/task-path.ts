import { UnsendableError } from './errors.ts'

/** Where a task is. No service accepts the ids that are refused here, and asked for one it would not see which. */
export function taskPath(taskId: string): string {
  if (taskId === '') throw new UnsendableError('a task id must not be empty')
  if (taskId === '.' || taskId === '..') {
    throw new UnsendableError(
      `there is no task ${JSON.stringify(taskId)}: in a URL that leads to another path`,
    )
  }
  try {
    return `/tasks/${encodeURIComponent(taskId)}`
  } catch {
    throw new UnsendableError(`there is no task ${JSON.stringify(taskId)}: it has a lone surrogate`)
  }
}

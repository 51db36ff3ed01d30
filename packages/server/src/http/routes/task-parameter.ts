import { MAX_TASK_ID_LENGTH, type PartitionRow } from '@baton/protocol'
import Type from 'typebox'
import { RequestProblem } from '../answers/problems.ts'

/** Renames `computeTableName` to the field name that is configured for the wire format. */
export function tableFieldRenamer(tableField: string) {
  return <Row extends Pick<PartitionRow, 'taskId' | 'computeTableName'>>(row: Row) => {
    if (tableField === 'computeTableName') return row
    const { taskId, computeTableName, ...others } = row
    return { taskId, [tableField]: computeTableName, ...others }
  }
}

export interface TaskParams {
  readonly taskId: string
}

export const taskParams = Type.Object({
  taskId: Type.String({
    minLength: 1,
    maxLength: MAX_TASK_ID_LENGTH,
    description: 'Percent-encoded where it holds a slash or other reserved characters',
    examples: ['orders-2026-03'],
  }),
})

/** The task id, decoded by the router. NUL is refused, because stores cannot represent it in a text. */
export function taskIdOf({ taskId }: TaskParams): string {
  // The router also matches an empty segment.
  if (taskId === '') {
    throw new RequestProblem('route_unknown', 'the path has no task id in it; the list of tasks is /tasks')
  }
  if (!taskId.includes('\0') && [...taskId].length <= MAX_TASK_ID_LENGTH) return taskId
  throw new RequestProblem(
    'parameter_invalid',
    `the task id in the path must have at most ${MAX_TASK_ID_LENGTH} characters and no NUL`,
  )
}

export function unknownTask(taskId: string): RequestProblem {
  return new RequestProblem('task_unknown', `no task ${JSON.stringify(taskId)} was ever called back here`)
}

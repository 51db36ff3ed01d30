import { backlogBodies, newTask, type Task } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import { callBackRequest } from '../requests.ts'

export interface FillInput {
  url: string
  partitions: number
  /** Partitions per task; the fewer tasks, the less there is to share between. */
  perTask?: number
  /** The task that an earlier call ended with: a backlog that is filled in several calls goes on with it. */
  task?: Task
}

/**
 * Not measured: puts partitions into the store, in one order whichever store it is. The next body is made
 * while the last one is stored.
 */
export async function fill({ url, partitions, perTask, task }: FillInput): Promise<Task> {
  const last = { task: task ?? newTask() }
  const connection = await HttpConnection.open(url)
  try {
    let underWay: Promise<void> = Promise.resolve()
    for (const body of backlogBodies(partitions, perTask, last)) {
      const request = callBackRequest(url, body)
      await underWay
      underWay = connection.exchange(request).then(({ status, body: answer }) => {
        if (status !== 200) throw new Error(`call-back answered ${status}: ${answer.slice(0, 500)}`)
      })
    }
    await underWay
  } finally {
    connection.close()
  }
  return last.task
}

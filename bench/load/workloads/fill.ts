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

/** While the service stores one array it reads the next: a tenth faster than one producer. */
const PRODUCERS = 2

/** Not measured: puts partitions into the store. The next body is made while the last one is stored. */
export async function fill({ url, partitions, perTask, task }: FillInput): Promise<Task> {
  const last = { task: task ?? newTask() }
  const bodies = backlogBodies(partitions, perTask, last)
  const connections = await Promise.all(Array.from({ length: PRODUCERS }, () => HttpConnection.open(url)))
  const produce = async (connection: HttpConnection) => {
    let underWay: Promise<void> = Promise.resolve()
    for (const body of bodies) {
      const request = callBackRequest(url, body)
      await underWay
      underWay = connection.exchange(request).then(({ status, body: answer }) => {
        if (status !== 200) throw new Error(`call-back answered ${status}: ${answer.slice(0, 500)}`)
      })
    }
    await underWay
  }
  try {
    await Promise.all(connections.map(produce))
  } finally {
    for (const connection of connections) connection.close()
  }
  return last.task
}

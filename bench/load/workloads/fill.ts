import { backlogBodies, callBackBody, deepeningBodies, newTask, type Task } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import { callBackRequest, leaseIds, pullRequest } from '../requests.ts'

/** Not measured: puts partitions into the store, in the same order for every store. */
export async function fill({ url, partitions }: { url: string; partitions: number }): Promise<void> {
  await callBackAll(url, backlogBodies(partitions))
}

/**
 * Not measured: adds partitions to the given tasks, or to that number of new ones. Returns the tasks for the
 * next call.
 */
export async function deepen(input: {
  url: string
  partitions: number
  tasks: readonly Task[] | number
}): Promise<readonly Task[]> {
  const { url, partitions } = input
  const tasks = typeof input.tasks === 'number' ? Array.from({ length: input.tasks }, newTask) : input.tasks
  await callBackAll(url, deepeningBodies(partitions, tasks))
  return tasks
}

/** Not measured: calls back new tasks of one level, each in its own array. */
export async function callBackTasks(input: {
  url: string
  clients: number
  tasks: number
  partitionsPerTask: number
}): Promise<void> {
  const { url, clients, tasks, partitionsPerTask } = input
  const bodies = newTaskBodies(tasks, partitionsPerTask)
  // The clients share one iterator.
  await Promise.all(Array.from({ length: clients }, () => callBackAll(url, bodies)))
}

const LANES_PER_TASK = 5_000

/** Not measured: calls back tasks with one partition on each of their levels. */
export async function fillLanes({ url, lanes }: { url: string; lanes: number }): Promise<void> {
  const bodies = function* () {
    for (let left = lanes; left > 0; left -= LANES_PER_TASK) {
      const count = Math.min(LANES_PER_TASK, left)
      yield callBackBody(count, newTask(), count)
    }
  }
  await callBackAll(url, bodies())
}

/** Not measured: pulls partitions, and keeps their leases. */
export async function takeLeases({ url, leases }: { url: string; leases: number }): Promise<void> {
  const connection = await HttpConnection.open(url)
  try {
    for (let left = leases; left > 0; ) {
      const batch = Math.min(1_000, left)
      const { status, body } = await connection.exchange(pullRequest(url, 'bench-worker-0', { batch }))
      const taken = leaseIds(body).length
      if (status !== 200 || taken === 0) throw new Error(`pull answered ${status}: ${body.slice(0, 500)}`)
      left -= taken
    }
  } finally {
    connection.close()
  }
}

function* newTaskBodies(tasks: number, partitions: number): Generator<string> {
  for (let made = 0; made < tasks; made++) yield callBackBody(partitions, newTask(), 1)
}

/** The next body is built while the last one is stored. */
async function callBackAll(url: string, bodies: Iterable<string>): Promise<void> {
  const connection = await HttpConnection.open(url)
  try {
    let underWay: Promise<void> = Promise.resolve()
    for (const body of bodies) {
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
}

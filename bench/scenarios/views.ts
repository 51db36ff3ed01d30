import type { Bench, Scenario } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { startBaton } from '../harness/services.ts'
import { median } from '../harness/statistics.ts'
import { callBackBody, newTask, type Task } from '../load/descriptors.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { callBackRequest, leaseIds, pullRequest, settleRequest } from '../load/requests.ts'
import type { Figure } from '../report/model.ts'

const SMALL = 1000
const PER_ARRAY = 5000
const HANDED_OUT = 200

/** What a person or a page requests of a task. Each answer is a bounded page or read from counters. */
const views: Readonly<Record<string, (taskId: string) => string>> = {
  'the task': (taskId) => `/tasks/${taskId}`,
  'the list of tasks': () => '/tasks',
  'a page of partitions': (taskId) => `/tasks/${taskId}/partitions?limit=100`,
  'a page of those ready': (taskId) => `/tasks/${taskId}/partitions?limit=100&state=ready`,
  'a page of those leased': (taskId) => `/tasks/${taskId}/partitions?limit=100&state=leased`,
  'a page of those parked': (taskId) => `/tasks/${taskId}/partitions?limit=100&state=parked`,
}

async function storedTask(connection: HttpConnection, url: string, partitions: number): Promise<Task> {
  const task = newTask()
  for (let left = partitions; left > 0; left -= PER_ARRAY) {
    const body = callBackBody(Math.min(PER_ARRAY, left), task)
    const { status, body: answer } = await connection.exchange(callBackRequest(url, body))
    if (status !== 200) throw new Error(`call-back answered ${status}: ${answer.slice(0, 500)}`)
  }
  return task
}

/** Some partitions of both tasks are done and some leased, so that no view finds its state empty. */
async function handOutSome(connection: HttpConnection, url: string): Promise<void> {
  const worker = 'bench-worker-0'
  for (const isSettled of [true, false]) {
    const { body } = await connection.exchange(pullRequest(url, worker, { batch: HANDED_OUT }))
    if (isSettled) await connection.exchange(settleRequest(url, worker)(leaseIds(body)))
  }
}

async function look(connection: HttpConnection, url: string, path: string): Promise<number> {
  const startedAt = performance.now()
  const { status, body } = await connection.exchange(
    `GET ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`,
  )
  if (status !== 200) throw new Error(`${path} answered ${status}: ${body.slice(0, 500)}`)
  return performance.now() - startedAt
}

async function run({ sizes, progress, cleanUp }: Bench) {
  const { url } = await startBaton({ dataFolder: temporaryFolder('data', cleanUp) }, cleanUp)
  const connection = await HttpConnection.open(url)
  cleanUp.add(async () => connection.close())
  const small = await storedTask(connection, url, SMALL)
  progress.say(`filling a task of ${sizes.storedAtStart}`)
  const large = await storedTask(connection, url, sizes.storedAtStart)
  await handOutSome(connection, url)
  const figures: Figure[] = []
  for (const [name, pathOf] of Object.entries(views)) {
    const times: Figure = { label: `${name}, of ${sizes.storedAtStart}`, unit: 'ms', values: [] }
    const ratio: Figure = { label: `${name}: ${sizes.storedAtStart} ÷ ${SMALL}`, unit: '×', values: [] }
    for (let round = 1; round <= sizes.rounds; round++) {
      const taken: { small: number[]; large: number[] } = { small: [], large: [] }
      for (let at = 0; at < sizes.looks; at++) {
        taken.small.push(await look(connection, url, pathOf(small.id)))
        taken.large.push(await look(connection, url, pathOf(large.id)))
      }
      times.values.push(median(taken.large))
      ratio.values.push(median(taken.large) / median(taken.small))
    }
    progress.say(`${name}: ${median(ratio.values).toFixed(2)} ×`)
    figures.push(times, ratio)
  }
  return {
    rows: [],
    figures,
    notes: [
      `Two tasks in one store, looked at in turn, ${sizes.looks} times a round; 1 × means that size costs nothing.`,
    ],
  }
}

export const viewsOfATask: Scenario = {
  name: 'views',
  title: 'Views of a small and a huge task, SQLite',
  run,
}

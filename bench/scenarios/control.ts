import type { Bench, Scenario } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { startBaton } from '../harness/services.ts'
import { callBackBody, newTask, type Task } from '../load/descriptors.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { callBackRequest, leaseIds, orderRequest, pullRequest, settleRequest } from '../load/requests.ts'
import type { Figure } from '../report/model.ts'

const LEVELS = 10_000
const PER_LEVEL_AND_ARRAY = 2
const ORDERS = ['pause', 'resume', 'cancel'] as const
const GOAL = { atMost: 50 }

async function storedTask(connection: HttpConnection, url: string, partitions: number): Promise<Task> {
  const task = newTask()
  const levels = Math.min(LEVELS, Math.ceil(partitions / 100))
  const perArray = levels * PER_LEVEL_AND_ARRAY
  for (let left = partitions; left > 0; left -= perArray) {
    const body = callBackBody(Math.min(perArray, left), task, levels)
    const { status, body: answer } = await connection.exchange(callBackRequest(url, body))
    if (status !== 200) throw new Error(`call-back answered ${status}: ${answer.slice(0, 500)}`)
  }
  return task
}

/**
 * Pulls and settles partitions of all tasks without a pause until stopped. Returns the time of the slowest
 * answer.
 */
function watchPulls(connection: HttpConnection, url: string): { stop(): Promise<number> } {
  const worker = 'bench-worker-0'
  let isStopped = false
  let longest = 0
  const timed = async (request: string) => {
    const startedAt = performance.now()
    const { body } = await connection.exchange(request)
    longest = Math.max(longest, performance.now() - startedAt)
    return body
  }
  const pulling = (async () => {
    while (!isStopped) {
      const leases = leaseIds(await timed(pullRequest(url, worker)))
      if (leases.length > 0) await timed(settleRequest(url, worker)(leases))
    }
  })()
  return {
    async stop() {
      isStopped = true
      await pulling
      return longest
    },
  }
}

async function run({ sizes, progress, cleanUp }: Bench) {
  const { url } = await startBaton({ dataFolder: temporaryFolder('data', cleanUp) }, cleanUp)
  const connection = await HttpConnection.open(url)
  const puller = await HttpConnection.open(url)
  cleanUp.add(async () => {
    connection.close()
    puller.close()
  })
  const taken = Object.fromEntries(ORDERS.map((order) => [order, [] as number[]]))
  const longest: number[] = []
  // The other tasks have work, so that pulls continue while this task may not serve.
  await storedTask(connection, url, 20_000)
  const rounds = Math.min(sizes.rounds, 3)
  for (let round = 1; round <= rounds; round++) {
    progress.say(`filling a task of ${sizes.storedAtStart}`)
    const task = await storedTask(connection, url, sizes.storedAtStart)
    const pulls = watchPulls(puller, url)
    for (const order of ORDERS) {
      const startedAt = performance.now()
      const { status, body } = await connection.exchange(orderRequest(url, task.id, order))
      if (status !== 200) throw new Error(`${order} answered ${status}: ${body.slice(0, 500)}`)
      taken[order]?.push(performance.now() - startedAt)
    }
    longest.push(await pulls.stop())
    progress.say(`round ${round}/${rounds}: longest pull or settle ${longest.at(-1)?.toFixed(1)} ms`)
  }
  const figures: Figure[] = [
    ...ORDERS.map((order): Figure => {
      return { label: `${order} a task`, unit: 'ms', values: taken[order] ?? [], goal: GOAL }
    }),
    { label: 'longest pull or settle meanwhile', unit: 'ms', values: longest, goal: GOAL },
  ]
  return {
    rows: [],
    figures,
    notes: [
      `Tasks of ${sizes.storedAtStart} partitions in up to ${LEVELS} levels, while a worker pulls and settles.`,
    ],
  }
}

export const control: Scenario = {
  name: 'control',
  title: 'Pausing, resuming and cancelling a huge task, SQLite',
  run,
}

import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import type { Helper } from '../harness/helper-process.ts'
import { processUsage } from '../harness/process-usage.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { type Service, startBaton } from '../harness/services.ts'
import type { Task } from '../load/descriptors.ts'
import type { LoadCalls } from '../load/load-process.ts'
import { type Figure, quotient } from '../report/model.ts'

const CLIENTS = 16
/** A progress line after this many partitions, because the largest backlog takes minutes to fill. */
const PER_LINE = 500_000
const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** A backlog shared by many tasks, and one of depth alone. */
const TASKS = [20, 1]

interface Size {
  readonly partitions: number
  readonly tasks: number
}

interface Filled {
  size: Size
  label: string
  baton: Service
  contender: Contender
  fillSeconds: number
  filledMb: number
}

/** Reports the fill rate and the service's memory. */
async function fillAndTell(
  { progress }: Bench,
  load: Helper<LoadCalls>,
  baton: Service,
  { partitions, tasks: count }: Size,
): Promise<{ tasks: readonly Task[]; seconds: number }> {
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1000
  let tasks: readonly Task[] | number = count
  for (let stored = 0; stored < partitions; ) {
    const more = Math.min(PER_LINE, partitions - stored)
    tasks = await load.call('deepen', { url: baton.url, partitions: more, tasks })
    stored += more
    progress.say(
      `${numbers.format(stored)} of ${numbers.format(partitions)} stored, ` +
        `${numbers.format(stored / seconds())}/s, ${numbers.format(processUsage(baton.pid).rssMb)} MB`,
    )
  }
  return { tasks: typeof tasks === 'number' ? [] : tasks, seconds: seconds() }
}

/** A new service with this many partitions waiting. */
async function filled(bench: Bench, load: Helper<LoadCalls>, size: Size): Promise<Filled> {
  const of = size.tasks === 1 ? 'one task' : `${size.tasks} tasks`
  const label = `backlog of ${numbers.format(size.partitions)} in ${of}`
  const baton = await startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp)
  bench.progress.say(`filling: ${label}`)
  const { tasks: filledTasks, seconds: fillSeconds } = await fillAndTell(bench, load, baton, size)
  const filledMb = processUsage(baton.pid).rssMb
  let tasks = filledTasks
  const contender = handOffContender({
    label,
    load,
    watched: [baton.pid],
    firstGuess: 0,
    async run(client, seconds) {
      const result = await client.call('steadyBacklog', { url: baton.url, clients: CLIENTS, seconds, tasks })
      tasks = result.tasks
      return result
    },
  })
  return { size, label, baton, contender, fillSeconds, filledMb }
}

async function run(bench: Bench) {
  const load = startLoad(bench)
  const all: Filled[] = []
  for (const tasks of TASKS)
    for (const partitions of bench.sizes.backlogs) all.push(await filled(bench, load, { partitions, tasks }))
  const contenders = all.map(({ contender }) => contender)
  const rows = await interleave(contenders, bench.sizes, bench.progress)
  const smallest = (tasks: number) => all.find(({ size }) => size.tasks === tasks)
  const figures: Figure[] = [
    ...all.flatMap(({ size, label, contender }) => {
      const small = smallest(size.tasks)
      if (small === undefined || small.contender === contender) return []
      const limit = rowOf(rows, small.contender)
      return quotient(`${label} ÷ the smallest`, rowOf(rows, contender), limit, { atLeast: 0.9 })
    }),
    ...all.map(({ label, filledMb }): Figure => {
      return { label: `${label}: memory after filling`, unit: 'MB', values: [filledMb] }
    }),
    ...all.map(({ label, baton }): Figure => {
      return { label: `${label}: memory at the end`, unit: 'MB', values: [processUsage(baton.pid).rssMb] }
    }),
    ...all.map(({ label, fillSeconds }): Figure => {
      return { label: `${label}: time to fill`, unit: 's', values: [fillSeconds] }
    }),
  ]
  return {
    rows,
    figures,
    notes: [
      `${CLIENTS} clients, pull and settle one by one, while a producer adds as many as were taken to the same tasks.`,
      'The services of all sizes are up at once, each on its own store.',
    ],
  }
}

export const backlog: Scenario = {
  name: 'backlog',
  title: 'From a small backlog to a huge one, SQLite',
  run,
}

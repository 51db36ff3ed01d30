import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import type { Helper } from '../harness/helper-process.ts'
import { processUsage } from '../harness/process-usage.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { type Service, startBaton } from '../harness/services.ts'
import { temporaryFolder } from '../harness/temporary-folder.ts'
import { PER_TASK, type Task } from '../load/descriptors.ts'
import type { LoadCalls } from '../load/load-process.ts'
import { type Figure, quotient } from '../report/model.ts'

const CLIENTS = 16
/** A line of progress after so many: ten million take minutes. */
const PER_LINE = 500_000
const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

interface Filled {
  label: string
  baton: Service
  contender: Contender
  fillSeconds: number
  filledMb: number
}

/** Says how fast it goes and what the service holds in memory by then; returns the seconds that it took. */
async function fillAndTell(
  { progress }: Bench,
  load: Helper<LoadCalls>,
  baton: Service,
  { partitions, perTask }: { partitions: number; perTask: number },
): Promise<number> {
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1000
  let task: Task | undefined
  for (let stored = 0; stored < partitions; ) {
    const count = Math.min(PER_LINE, partitions - stored)
    task = await load.call('fill', { url: baton.url, partitions: count, perTask, ...(task ? { task } : {}) })
    stored += count
    progress.say(
      `${numbers.format(stored)} of ${numbers.format(partitions)} stored, ` +
        `${numbers.format(stored / seconds())}/s, ${numbers.format(processUsage(baton.pid).rssMb)} MB`,
    )
  }
  return seconds()
}

/** A service of its own with so many partitions waiting, in tasks of the given size. */
async function filled(
  bench: Bench,
  load: Helper<LoadCalls>,
  partitions: number,
  perTask: number,
): Promise<Filled> {
  const tasks = Math.ceil(partitions / perTask)
  const label = `backlog of ${numbers.format(partitions)} in ${tasks === 1 ? 'one task' : `${tasks} tasks`}`
  const baton = await startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp)
  bench.progress.say(`filling: ${label}`)
  const fillSeconds = await fillAndTell(bench, load, baton, { partitions, perTask })
  const filledMb = processUsage(baton.pid).rssMb
  const contender = handOffContender({
    label,
    load,
    watched: [baton.pid],
    firstGuess: 0,
    run: (client, seconds) => client.call('steadyBacklog', { url: baton.url, clients: CLIENTS, seconds }),
  })
  return { label, baton, contender, fillSeconds, filledMb }
}

async function run(bench: Bench) {
  const load = startLoad(bench)
  const all: Filled[] = []
  for (const partitions of bench.sizes.backlogs) {
    all.push(await filled(bench, load, partitions, PER_TASK))
  }
  // Depth alone: the same number with nothing to share between tasks.
  const [, second] = bench.sizes.backlogs
  if (second !== undefined && second > PER_TASK) all.push(await filled(bench, load, second, second))
  const contenders = all.map(({ contender }) => contender)
  const rows = await interleave(contenders, bench.sizes, bench.progress)
  const [smallest, ...larger] = all
  if (!smallest) throw new Error('no backlog to measure')
  const limit = rowOf(rows, smallest.contender)
  const figures: Figure[] = [
    ...larger.map(({ label, contender }) =>
      quotient(`${label} ÷ the smallest`, rowOf(rows, contender), limit, { atLeast: 0.9 }),
    ),
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
      `${CLIENTS} clients, pull and settle one by one, while a producer calls back as many as were taken.`,
      'The services of all sizes are up at once, each on its own store.',
    ],
  }
}

export const backlog: Scenario = {
  name: 'backlog',
  title: 'From a small backlog to a huge one, SQLite',
  run,
}

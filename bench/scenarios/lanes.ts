import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { processUsage } from '../harness/process-usage.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { type Service, startBaton } from '../harness/services.ts'
import { type Figure, quotient } from '../report/model.ts'

const CLIENTS = 16
const PER_LANE = 5

interface Filled {
  label: string
  baton: Service
  contender: Contender
}

/** Each task has one lane, all on the same level: they are served in turn. */
async function run(bench: Bench) {
  const load = startLoad(bench)
  const all: Filled[] = []
  for (const lanes of bench.sizes.lanes) {
    const label = lanes === 1 ? 'one lane' : `${lanes} lanes`
    const baton = await startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp)
    bench.progress.say(`filling: ${label}`)
    const partitions = Math.max(20_000, lanes * PER_LANE)
    let tasks = await load.call('deepen', { url: baton.url, partitions, tasks: lanes })
    const contender = handOffContender({
      label,
      load,
      watched: [baton.pid],
      firstGuess: 0,
      async run(client, seconds) {
        const result = await client.call('steadyBacklog', {
          url: baton.url,
          clients: CLIENTS,
          seconds,
          tasks,
        })
        tasks = result.tasks
        return result
      },
    })
    all.push({ label, baton, contender })
  }
  const rows = await interleave(
    all.map(({ contender }) => contender),
    bench.sizes,
    bench.progress,
  )
  const [one, ...others] = all
  const figures: Figure[] = [
    ...others.flatMap(({ label, contender }) =>
      one === undefined
        ? []
        : [quotient(`${label} ÷ one`, rowOf(rows, contender), rowOf(rows, one.contender))],
    ),
    ...all.map(({ label, baton }): Figure => {
      return { label: `${label}: memory at the end`, unit: 'MB', values: [processUsage(baton.pid).rssMb] }
    }),
  ]
  return {
    rows,
    figures,
    notes: [
      `${CLIENTS} clients, pull and settle one by one, while a producer adds as many as were taken to the same tasks.`,
      'One task per lane, all on one level.',
    ],
  }
}

export const lanes: Scenario = {
  name: 'lanes',
  title: 'From one lane to very many on a level, SQLite',
  run,
}

import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { processUsage } from '../harness/process-usage.ts'
import { interleave, rowOf } from '../harness/rounds.ts'
import { startBaton } from '../harness/services.ts'
import { temporaryFolder } from '../harness/temporary-folder.ts'
import { type Figure, quotient } from '../report/model.ts'

const CLIENTS = 16
const FILL_STEP = 250_000
const numbers = new Intl.NumberFormat('en')

async function run(bench: Bench) {
  const load = startLoad(bench)
  const contenders = []
  const figures: Figure[] = []
  for (const backlog of bench.sizes.backlogs) {
    const label = `backlog of ${numbers.format(backlog)}`
    const baton = await startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp)
    const startedAt = performance.now()
    for (let filled = 0; filled < backlog; filled += FILL_STEP) {
      await load.call('fill', { url: baton.url, partitions: Math.min(FILL_STEP, backlog - filled) })
      bench.progress.say(`${label}: ${numbers.format(Math.min(backlog, filled + FILL_STEP))} called back`)
    }
    figures.push({
      label: `${label}: time to fill`,
      unit: 's',
      values: [(performance.now() - startedAt) / 1000],
    })
    const contender = handOffContender({
      label,
      load,
      watched: [baton.pid],
      firstGuess: 0,
      run: (client, seconds) => client.call('steadyBacklog', { url: baton.url, clients: CLIENTS, seconds }),
    })
    contenders.push({ contender, label, baton })
  }
  const rows = await interleave(
    contenders.map(({ contender }) => contender),
    bench.sizes,
    bench.progress,
  )
  const [smallest, ...larger] = contenders
  if (!smallest) throw new Error('no backlog to measure')
  for (const { contender, label } of larger) {
    const subject = rowOf(rows, contender)
    figures.push(
      quotient(`${label} ÷ the smallest`, subject, rowOf(rows, smallest.contender), { atLeast: 0.9 }),
    )
  }
  for (const { label, baton } of contenders) {
    figures.push({
      label: `${label}: memory at the end`,
      unit: 'MB',
      values: [processUsage(baton.pid).rssMb],
    })
  }
  return {
    rows,
    figures,
    notes: [
      `${CLIENTS} clients, pull and settle one by one, while a producer calls back as many as were taken.`,
      'The services of all sizes are up at once, each on its own store.',
    ],
  }
}

export const backlog: Scenario = { name: 'backlog', title: 'From a small backlog to a huge one, SQLite', run }

import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { startBaton } from '../harness/services.ts'
import { newTask, type Task } from '../load/descriptors.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = 16
const PER_TASK = 20
/** At most as many leases of one table at a time. */
const MAX_LEASES = 8
const LIMITED = 'bench.at_limit'
/** The lease that keeps the table at its limit outlives the run. */
const LEASE_SECONDS = '36000'

interface Situation {
  label: string
  /** Each of the tasks that are served has a table; whether each of these has a limit. */
  limited: boolean
  /** Tasks on one table that is at its limit. */
  blocked: number
}

async function run(bench: Bench) {
  const { limitedTables, tasksAtLimit } = bench.sizes
  const load = startLoad(bench)
  const contenderOf = async ({ label, limited, blocked }: Situation): Promise<Contender> => {
    const baton = await startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp, {
      BATON_LEASE_SECONDS: LEASE_SECONDS,
    })
    const limit = (table: string, maxLeases: number) =>
      answered(`${baton.url}/tables/${table}/settings`, {
        method: 'PATCH',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ maxLeases }),
      })
    bench.progress.say(`filling: ${label}`)
    if (blocked > 0) {
      const atLimit = Array.from({ length: blocked }, (): Task => ({ ...newTask(), table: LIMITED }))
      await load.call('deepen', { url: baton.url, partitions: blocked * PER_TASK, tasks: atLimit })
      await limit(LIMITED, 1)
      await answered(`${baton.url}/pull?table=${LIMITED}`)
    }
    const own = Array.from({ length: limitedTables }, newTask)
    let tasks = await load.call('deepen', {
      url: baton.url,
      partitions: limitedTables * PER_TASK,
      tasks: own,
    })
    if (limited) for (const { table } of tasks) await limit(table, MAX_LEASES)
    return handOffContender({
      label,
      load,
      watched: [baton.pid],
      firstGuess: 0,
      async run(client, seconds) {
        const input = { url: baton.url, clients: CLIENTS, seconds, tasks }
        const result = await client.call('steadyBacklog', input)
        tasks = result.tasks
        return result
      },
    })
  }
  const none = await contenderOf({ label: 'no limit', limited: false, blocked: 0 })
  const many = await contenderOf({ label: `${limitedTables} limited tables`, limited: true, blocked: 0 })
  const atLimit = await contenderOf({
    label: `${tasksAtLimit} tasks on a table at its limit`,
    limited: false,
    blocked: tasksAtLimit,
  })
  const rows = await interleave([none, many, atLimit], bench.sizes, bench.progress)
  const ofRate = (contender: Contender) =>
    quotient(`${contender.label} ÷ no limit`, rowOf(rows, contender), rowOf(rows, none), { atLeast: 0.9 })
  return {
    rows,
    figures: [ofRate(many), ofRate(atLimit)],
    notes: [
      `${CLIENTS} clients, pull and settle one by one, while a producer adds as many as were taken to the same ${limitedTables} tasks, each with a table of its own.`,
      `A limited table has at most ${MAX_LEASES} leases. The table at its limit has one, which is held during the run.`,
    ],
  }
}

async function answered(url: string, init: RequestInit = {}): Promise<void> {
  const response = await fetch(url, init)
  const body = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${body.slice(0, 500)}`)
}

export const limits: Scenario = {
  name: 'limits',
  title: 'Limits of compute tables, SQLite',
  run,
}

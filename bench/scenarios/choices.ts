import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { handOffContender } from '../harness/hand-off-contender.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { startBaton } from '../harness/services.ts'
import { newTask, type Task } from '../load/descriptors.ts'
import { type Figure, quotient } from '../report/model.ts'

const CLIENTS = 16
const PER_TASK = 20
const TABLES_PER_CHOICE = 50
const HOT = 'bench.hot'

interface Situation {
  label: string
  tasks: Task[]
  /** How many partitions the tasks have before the first measurement. */
  partitions: number
  /** The tables that pulls name, in rotation. */
  choices?: string[][]
  /** Tables with one lease at a time. */
  limited?: string[]
}

const listOf = <Item>(length: number, item: (at: number) => Item): Item[] =>
  Array.from({ length }, (_, at) => item(at))

function situations({ chosenTasks, tablesInLane, limitedTables }: Bench['sizes']): Situation[] {
  const partitions = chosenTasks * PER_TASK
  const own = listOf(chosenTasks, newTask)
  const hot = (choices: number): Situation => ({
    label: `${choices} choices that name one hot table`,
    tasks: listOf(chosenTasks, () => ({ ...newTask(), table: HOT })),
    partitions,
    choices: listOf(choices, (at) => [HOT, `bench.other_${at}`]),
  })
  const wide = (label: string, limited: boolean): Situation => {
    const task: Task = { ...newTask(), tables: tablesInLane }
    const tables = listOf(limitedTables, (at) => `${task.table}_${at}`)
    return {
      label: `${tablesInLane} tables in a lane beside a second task${label}`,
      tasks: [task, newTask()],
      partitions: 2 * tablesInLane,
      ...(limited ? { limited: tables } : {}),
    }
  }
  const tableAt = (at: number) => (own[at % own.length] as Task).table
  return [
    { label: 'no choice', tasks: listOf(chosenTasks, newTask), partitions },
    {
      label: `100 choices of ${TABLES_PER_CHOICE} tables`,
      tasks: own,
      partitions,
      choices: listOf(100, (choice) => listOf(TABLES_PER_CHOICE, (at) => tableAt(choice * 37 + at * 79))),
    },
    hot(1000),
    hot(1001),
    wide('', false),
    wide(`, ${limitedTables} of them with one lease at a time`, true),
  ]
}

async function run(bench: Bench) {
  const load = startLoad(bench)
  const longest = new Map<Contender, number[]>()
  const contenderOf = async ({ label, tasks: called, partitions, choices, limited = [] }: Situation) => {
    const baton = await startBaton({ dataFolder: temporaryFolder('data', bench.cleanUp) }, bench.cleanUp)
    bench.progress.say(`filling: ${label}`)
    let tasks = await load.call('deepen', { url: baton.url, partitions, tasks: called })
    for (const table of limited) await limitTo(baton.url, table)
    const answers: number[] = []
    const contender = handOffContender({
      label,
      load,
      watched: [baton.pid],
      firstGuess: 0,
      async run(client, seconds) {
        const input = { url: baton.url, clients: CLIENTS, seconds, tasks, ...(choices ? { choices } : {}) }
        const result = await client.call('steadyBacklog', input)
        tasks = result.tasks
        answers.push(result.latency.maxMs)
        return result
      },
    })
    longest.set(contender, answers)
    return contender
  }
  const contenders: Contender[] = []
  for (const situation of situations(bench.sizes)) contenders.push(await contenderOf(situation))
  const rows = await interleave(contenders, bench.sizes, bench.progress)
  const [plain, ...others] = contenders
  const figures = others.flatMap((contender): Figure[] => {
    if (plain === undefined) return []
    const { label } = contender
    const slowest = (longest.get(contender) ?? []).slice(-bench.sizes.rounds)
    return [
      quotient(`${label} ÷ none`, rowOf(rows, contender), rowOf(rows, plain), { atLeast: 0.5 }),
      { label: `${label}: longest answer`, unit: 'ms', values: slowest, goal: { atMost: 50 } },
    ]
  })
  return {
    rows,
    figures,
    notes: [
      `${CLIENTS} clients, pull and settle one by one, while a producer adds as many as were taken to the same tasks.`,
      'The choices are used in rotation.',
    ],
  }
}

async function limitTo(url: string, table: string): Promise<void> {
  const response = await fetch(`${url}/tables/${table}/settings`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ maxLeases: 1 }),
  })
  if (!response.ok) throw new Error(`${table}: ${response.status}: ${(await response.text()).slice(0, 500)}`)
}

export const choices: Scenario = {
  name: 'choices',
  title: 'Pulls that name tables, and very many tables in a lane, SQLite',
  run,
}

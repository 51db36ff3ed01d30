import { parseArgs } from 'node:util'

/**
 * The sizes of all scenarios. `--quick` only shows that each scenario still runs; its figures mean nothing.
 */
export interface Sizes {
  rounds: number
  /** Length of one measurement. */
  seconds: number
  warmUpSeconds: number
  /** The maximum number of warm-ups of that length. */
  warmUps: number
  /** Partitions in the store before the backlog scenario measures. */
  backlogs: readonly number[]
  /** The number of lanes on one level. */
  lanes: readonly number[]
  /** Tasks, and tables in one lane, of the pulls that choose. */
  chosenTasks: number
  tablesInLane: number
  /** Compute tables with a limit, and tasks on one that is at its limit. */
  limitedTables: number
  tasksAtLimit: number
  /** The number of nodes that share a database. */
  nodes: readonly number[]
  smallCallBack: number
  largeCallBack: number
  longPolls: number
  wokenPartitions: number
  /** How long to wait for answers after the call-back that wakes the long polls. */
  wakeSeconds: number
  pollers: number
  littleWorkSeconds: number
  idleSeconds: number
  /** In the store when a service starts: waiting partitions, lanes, leases. */
  storedAtStart: number
  lanesAtStart: number
  leasesAtStart: number
  /** What the page shows. */
  pageLevels: number
  pageInstances: number
  pageTables: number
  /** How often a round requests each view. */
  looks: number
  /** How often the leader is killed, and frozen. */
  kills: number
  freezes: number
}

export interface Options {
  mode: 'quick' | 'normal' | 'full'
  only: readonly string[]
  list: boolean
  help: boolean
  resultsFile: string | undefined
  /** The flags as given, without the path of the results page. */
  flags: string
  sizes: Sizes
}

const NORMAL: Sizes = {
  rounds: 5,
  seconds: 4,
  warmUpSeconds: 2,
  warmUps: 5,
  backlogs: [1_000, 1_000_000],
  lanes: [1, 10_000],
  chosenTasks: 4_000,
  tablesInLane: 100_000,
  limitedTables: 1_000,
  tasksAtLimit: 4_000,
  nodes: [1, 2, 3],
  smallCallBack: 500,
  largeCallBack: 50_000,
  longPolls: 10_000,
  wokenPartitions: 100,
  wakeSeconds: 2,
  pollers: 64,
  littleWorkSeconds: 30,
  idleSeconds: 10,
  storedAtStart: 1_000_000,
  lanesAtStart: 199_000,
  leasesAtStart: 249_000,
  pageLevels: 5_000,
  pageInstances: 2_000,
  pageTables: 500,
  looks: 50,
  kills: 30,
  freezes: 3,
}

const QUICK: Sizes = {
  rounds: 1,
  seconds: 0.1,
  warmUpSeconds: 0.05,
  warmUps: 1,
  backlogs: [1_000, 5_000],
  lanes: [1, 100],
  chosenTasks: 100,
  tablesInLane: 500,
  limitedTables: 20,
  tasksAtLimit: 50,
  nodes: [1, 2],
  smallCallBack: 500,
  largeCallBack: 5_000,
  longPolls: 200,
  wokenPartitions: 20,
  wakeSeconds: 1,
  pollers: 16,
  littleWorkSeconds: 1,
  idleSeconds: 0.5,
  storedAtStart: 5_000,
  lanesAtStart: 1_000,
  leasesAtStart: 1_000,
  pageLevels: 50,
  pageInstances: 20,
  pageTables: 10,
  looks: 5,
  kills: 1,
  freezes: 0,
}

export const HELP = `npm run bench -- [flags]

  --only name[,name]   only these scenarios (see --list)
  --rounds n           measurements per contender (default ${NORMAL.rounds})
  --seconds s          length of one measurement (default ${NORMAL.seconds})
  --quick              everything tiny, done in a minute: shows that it runs, measures nothing
  --full               also the backlog of 10,000,000
  --backlogs n,n       other sizes for the backlog scenario (default ${NORMAL.backlogs.join(',')})
  --results file       write the page there (a run of all scenarios writes bench/results.md)
  --list               names of the scenarios
  --help               this text
`

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      results: { type: 'string' },
      quick: { type: 'boolean', default: false },
      backlogs: { type: 'string' },
      full: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const base = values.quick ? QUICK : NORMAL
  const sizesGiven = values.backlogs?.split(',').map((size) => positive('--backlogs', size, 0))
  const backlogs = sizesGiven ?? (values.full ? [...base.backlogs, 10_000_000] : base.backlogs)
  const seconds = positive('--seconds', values.seconds, base.seconds)
  return {
    mode: values.quick ? 'quick' : values.full ? 'full' : 'normal',
    only: (values.only ?? []).flatMap((names) => names.split(',')).filter((name) => name !== ''),
    list: values.list,
    help: values.help,
    resultsFile: values.results,
    flags: args.filter((arg, at) => !arg.startsWith('--results') && args[at - 1] !== '--results').join(' '),
    sizes: {
      ...base,
      backlogs,
      lanes: values.full ? [...base.lanes, 100_000] : base.lanes,
      rounds: positive('--rounds', values.rounds, base.rounds),
      seconds,
      warmUpSeconds: Math.min(base.warmUpSeconds, seconds),
    },
  }
}

function positive(flag: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (!(value > 0)) throw new Error(`${flag} needs a positive number, not "${text}"`)
  return value
}

import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { episode } from './episode.ts'
import { type Fault, faults } from './simulation.ts'

/** What a thread has done: every `stride`-th seed from `first` on. */
interface Ran {
  readonly episodes: number
  readonly operations: number
  readonly seconds: number
  readonly faults: ReadonlyMap<Fault, number>
  /** The seed of an episode with a finding. */
  readonly found: number | null
}

interface Order {
  readonly first: number
  readonly stride: number
  readonly steps: number
  readonly seconds: number
}

/** Enough for the garbage of many steps: most of it is never copied. */
const YOUNG_GENERATION_MB = 192

async function run({ first, stride, steps, seconds }: Order): Promise<Ran> {
  // Injected faults are thousands of errors, so they have no stack traces.
  Error.stackTraceLimit = 0
  const startedAt = performance.now()
  const elapsed = () => (performance.now() - startedAt) / 1000
  let [episodes, operations] = [0, 0]
  let found: number | null = null
  const met = new Map<Fault, number>()
  while (found === null && (episodes === 0 || elapsed() < seconds)) {
    const seed = first + episodes * stride
    const outcome = await episode(seed, steps)
    operations += outcome.operations
    episodes += 1
    for (const [fault, times] of outcome.faults) met.set(fault, (met.get(fault) ?? 0) + times)
    if (outcome.failure !== null) found = seed
  }
  return { episodes, operations, seconds: elapsed(), faults: met, found }
}

const HELP = `npm run simulate -- [options]

  --seed <n>      of the first episode (a random one); each further episode has the next
  --seconds <n>   how long to begin episodes (10); 0: one episode, to repeat a finding
  --threads <n>   episodes that run in parallel (one for each processor)
  --steps <n>     of each episode (1500)
  --lines <n>     of the trace of a finding, counted from the end (30)`

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000_000)) },
      seconds: { type: 'string', default: '10' },
      threads: { type: 'string', default: String(availableParallelism()) },
      steps: { type: 'string', default: '1500' },
      lines: { type: 'string', default: '30' },
      help: { type: 'boolean' },
    },
  })
  const say = (text: string) => process.stdout.write(`${text}\n`)
  if (values.help === true) {
    say(HELP)
    return
  }
  const [first, steps, seconds] = [Number(values.seed), Number(values.steps), Number(values.seconds)]
  const stride = seconds === 0 ? 1 : Number(values.threads)
  say(`seed ${first}`)
  const workers = Array.from({ length: stride }, (_, nth) => {
    const order: Order = { first: first + nth, stride, steps, seconds }
    const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB }
    return new Worker(new URL(import.meta.url), { workerData: order, resourceLimits })
  })
  const ran = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0] as Ran))
  const sum = (of: (one: Ran) => number) => ran.reduce((total, one) => total + of(one), 0)
  const seed = ran.find(({ found }) => found !== null)?.found
  if (seed !== undefined && seed !== null) {
    const { story, failure } = await episode(seed, steps, {}, true)
    for (const line of story.slice(Math.max(0, story.length - Number(values.lines)))) say(line)
    say(`${failure?.stack ?? `seed ${seed} does not repeat`}`)
    say(`npm run simulate -- --seed ${seed} --seconds 0${steps === 1500 ? '' : ` --steps ${steps}`}`)
    process.exitCode = 1
  }
  const occurred = faults.map((fault) => `${fault}: ${sum((one) => one.faults.get(fault) ?? 0)}`)
  say(occurred.join(', '))
  const rate = Math.round(sum(({ operations, seconds: took }) => operations / took))
  say(
    `${sum((one) => one.episodes)} episodes, ${sum((one) => one.operations)} operations, ` +
      `${rate} a second on ${stride} threads`,
  )
}

if (isMainThread) await main()
else parentPort?.postMessage(await run(workerData as Order))

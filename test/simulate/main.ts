import { parseArgs } from 'node:util'
import { episode } from './episode.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000_000)) },
    seconds: { type: 'string', default: '10' },
    /** The steps of each episode. */
    steps: { type: 'string', default: '1500' },
    /** The number of trace lines to print, counted from the end. */
    lines: { type: 'string', default: '30' },
  },
})
const first = Number(values.seed)
const steps = Number(values.steps)
const startedAt = performance.now()
const elapsed = () => (performance.now() - startedAt) / 1000
const say = (text: string) => process.stdout.write(`${text}\n`)

say(`seed ${first}`)
// Injected faults are thousands of errors, so they have no stack traces. An episode with a finding is run
// again with them.
const { stackTraceLimit } = Error
Error.stackTraceLimit = 0
let operations = 0
let episodes = 0
while (episodes === 0 || elapsed() < Number(values.seconds)) {
  const seed = first + episodes
  const outcome = await episode(seed, steps)
  operations += outcome.operations
  episodes += 1
  if (outcome.failure === null) continue
  Error.stackTraceLimit = stackTraceLimit
  const { story, failure } = await episode(seed, steps, {}, true)
  for (const line of story.slice(Math.max(0, story.length - Number(values.lines)))) say(line)
  say(`${failure?.stack ?? outcome.failure}`)
  say(`npm run simulate -- --seed ${seed} --seconds 0${steps === 1500 ? '' : ` --steps ${steps}`}`)
  process.exitCode = 1
  break
}
say(`${episodes} episodes, ${operations} operations, ${Math.round(operations / elapsed())} a second`)

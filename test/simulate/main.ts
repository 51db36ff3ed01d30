import { parseArgs } from 'node:util'
import { episode } from './episode.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000_000)) },
    seconds: { type: 'string', default: '10' },
    /** Of each episode. */
    steps: { type: 'string', default: '1500' },
    /** So many lines of what happened last. */
    lines: { type: 'string', default: '30' },
  },
})
const first = Number(values.seed)
const steps = Number(values.steps)
const startedAt = performance.now()
const elapsed = () => (performance.now() - startedAt) / 1000
const say = (text: string) => process.stdout.write(`${text}\n`)

say(`seed ${first}`)
let operations = 0
let episodes = 0
while (episodes === 0 || elapsed() < Number(values.seconds)) {
  const seed = first + episodes
  const outcome = await episode(seed, steps)
  operations += outcome.operations
  episodes += 1
  if (outcome.failure === null) continue
  const { story } = await episode(seed, steps, {}, true)
  for (const line of story.slice(Math.max(0, story.length - Number(values.lines)))) say(line)
  say(`${outcome.failure.stack}`)
  say(`npm run simulate -- --seed ${seed} --seconds 0${steps === 1500 ? '' : ` --steps ${steps}`}`)
  process.exitCode = 1
  break
}
say(`${episodes} episodes, ${operations} operations, ${Math.round(operations / elapsed())} a second`)

import type { Bench, Scenario } from './harness/bench.ts'
import { Skipped } from './harness/bench.ts'
import { CleanUp, cleanUpOnInterrupt } from './harness/clean-up.ts'
import { HELP, type Options, readOptions } from './harness/options.ts'
import { Progress } from './harness/progress.ts'
import { type FinishedScenario, withoutGoals } from './report/model.ts'
import { writeResultsPage } from './report/results-page.ts'
import { asText, scenarioText } from './report/tables.ts'
import { scenarios } from './scenarios/index.ts'

const DEFAULT_RESULTS = new URL('./results.md', import.meta.url)

async function runScenario(scenario: Scenario, bench: Bench, quick: boolean): Promise<FinishedScenario> {
  const { name, title } = scenario
  bench.progress.scenario(name)
  try {
    const report = await scenario.run(bench)
    return { name, title, outcome: { report: quick ? withoutGoals(report) : report } }
  } catch (error) {
    if (error instanceof Skipped) {
      bench.progress.say(`skipped: ${error.message}`)
      return { name, title, outcome: { skipped: error.message } }
    }
    const failed = error instanceof Error ? (error.stack ?? error.message) : String(error)
    bench.progress.say(`failed: ${failed}`)
    return { name, title, outcome: { failed } }
  } finally {
    await bench.cleanUp.run()
    bench.progress.scenario('')
  }
}

function chosen({ only }: Options): readonly Scenario[] {
  const unknown = only.filter((name) => !scenarios.some((scenario) => scenario.name === name))
  if (unknown.length > 0) throw new Error(`no scenario named ${unknown.join(', ')}; see --list`)
  return only.length === 0 ? scenarios : scenarios.filter((scenario) => only.includes(scenario.name))
}

async function main(options: Options): Promise<void> {
  const progress = new Progress()
  const cleanUp = new CleanUp()
  cleanUpOnInterrupt([cleanUp])
  const finished: FinishedScenario[] = []
  for (const scenario of chosen(options)) {
    const result = await runScenario(
      scenario,
      { sizes: options.sizes, progress, cleanUp },
      options.mode === 'quick',
    )
    finished.push(result)
    const style = { heading: (title: string) => `\n━━ ${title}`, table: asText, item: '· ' }
    process.stdout.write(`${scenarioText(result, style)}\n\n`)
  }
  // A page in the repository only from a whole run: parts of different runs are not comparable.
  const whole = options.only.length === 0 && options.mode !== 'quick'
  const file = options.resultsFile ?? (whole ? DEFAULT_RESULTS : undefined)
  if (file !== undefined) writeResultsPage(file, options, finished)
  if (finished.some(({ outcome }) => 'failed' in outcome)) process.exitCode = 1
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) process.stdout.write(HELP)
  else if (options.list) {
    for (const { name, title } of scenarios) process.stdout.write(`${name.padEnd(20)} ${title}\n`)
  } else await main(options)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}

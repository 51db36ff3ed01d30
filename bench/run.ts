import { type Bench, Progress, type Scenario } from './harness/bench.ts'
import { CleanUp, cleanUpOnInterrupt } from './harness/clean-up.ts'
import { HELP, type Options, readOptions } from './harness/options.ts'
import { type FinishedScenario, unmeasured, withoutGoals } from './report/model.ts'
import { ResultsFile, resultsPage } from './report/results-file.ts'
import { asText, scenarioText } from './report/tables.ts'
import { scenarios } from './scenarios/index.ts'
import { versionScenarios } from './scenarios/versions.ts'

const WHOLE_PAGE = new URL('./results.md', import.meta.url)

async function runScenario(scenario: Scenario, bench: Bench, quick: boolean): Promise<FinishedScenario> {
  const { name, title } = scenario
  bench.progress.scenario(name)
  try {
    const report = await scenario.run(bench)
    const nothing = unmeasured(report)
    if (nothing.length > 0) throw new Error(`nothing was measured of: ${nothing.join('; ')}`)
    return { name, title, outcome: { report: quick ? withoutGoals(report) : report } }
  } catch (error) {
    const failed = error instanceof Error ? (error.stack ?? error.message) : String(error)
    bench.progress.say(`failed: ${failed}`)
    return { name, title, outcome: { failed } }
  } finally {
    await bench.cleanUp.run()
    bench.progress.scenario('')
  }
}

function chosen({ only }: Options): readonly Scenario[] {
  const all = [...scenarios, ...versionScenarios]
  const unknown = only.filter((name) => !all.some((scenario) => scenario.name === name))
  if (unknown.length > 0) throw new Error(`no scenario named ${unknown.join(', ')}; see --list`)
  return only.length === 0 ? scenarios : all.filter((scenario) => only.includes(scenario.name))
}

async function main(options: Options): Promise<void> {
  const progress = new Progress()
  const resultsFile = new ResultsFile(options, WHOLE_PAGE, (text) => progress.say(text))
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
  const failed = finished.filter(({ outcome }) => 'failed' in outcome).map(({ name }) => `${name} failed`)
  resultsFile.write(() => resultsPage(options, finished), failed)
  if (failed.length === 0) return
  process.stderr.write(`${failed.join('\n')}\n`)
  process.exitCode = 1
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) process.stdout.write(HELP)
  else if (options.list) {
    for (const { name, title } of [...scenarios, ...versionScenarios])
      process.stdout.write(`${name.padEnd(20)} ${title}\n`)
  } else await main(options)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}

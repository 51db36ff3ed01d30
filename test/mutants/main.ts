import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Mutant, mutants } from './mutants.ts'

const HELP = `npm run mutants -- [--only <text>]

Applies each mutant, one change of the source, to a copy of this checkout, and runs the tests that must find it.
  --only <text>   only mutants whose area or bug contains this text
`

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values } = parseArgs({
  options: { only: { type: 'string', default: '' }, help: { type: 'boolean' } },
})
if (values.help) {
  process.stdout.write(HELP)
  process.exit()
}

const chosen = mutants.filter(({ area, bug }) => `${area}: ${bug}`.includes(values.only))
const copy = copyOf(root)
try {
  process.exitCode = run(chosen) && chosen.length > 0 ? 0 : 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}

function run(chosen: readonly Mutant[]): boolean {
  const inapplicable = chosen.filter(({ file, from }) => timesIn(file, from) !== 1)
  for (const { file, from } of inapplicable) console.log(`${file} must contain this once: ${from}`)
  if (inapplicable.length > 0) return false
  const healthy = outcomeOf([...new Set(chosen.flatMap(({ tests }) => tests))])
  if (healthy !== 'passed') {
    console.log(`without a mutant: ${healthy}`)
    return false
  }
  const survivors = chosen.filter((mutant) => {
    const begun = performance.now()
    const outcome = withMutant(mutant)
    const isFound = outcome.endsWith('failed')
    const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(6)
    console.log(
      `${isFound ? 'found   ' : 'SURVIVED'} ${seconds} s  ${mutant.area}: ${mutant.bug} (${outcome})`,
    )
    return !isFound
  })
  console.log(`${chosen.length - survivors.length} of ${chosen.length} mutants were found`)
  return survivors.length === 0
}

/** Without Git's folder. Links of the workspace lead to the copy, all other dependencies are shared. */
function copyOf(checkout: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-mutants-'))
  const isCopied = (path: string) => !['node_modules', '.git', 'data'].includes(basename(path))
  cpSync(checkout, folder, { recursive: true, preserveTimestamps: true, filter: isCopied })
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(join(checkout, 'node_modules')))
    if (name !== '@baton' && name !== '.cache')
      symlinkSync(join(checkout, 'node_modules', name), join(modules, name))
  cpSync(join(checkout, 'node_modules/@baton'), join(modules, '@baton'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  return folder
}

function timesIn(file: string, text: string): number {
  return readFileSync(join(copy, file), 'utf8').split(text).length - 1
}

/** The time of the file stays: the built page is not affected, and is not built again. */
function withMutant({ file, from, to, tests }: Mutant): string {
  const path = join(copy, file)
  const source = readFileSync(path, 'utf8')
  const { atime, mtime } = statSync(path)
  const write = (text: string) => {
    writeFileSync(path, text)
    utimesSync(path, atime, mtime)
  }
  write(source.replace(from, () => to))
  try {
    return outcomeOf(tests)
  } finally {
    write(source)
  }
}

/** A file that cannot be loaded has no failed test, so a mutant that is not a program does not count as found. */
function outcomeOf(tests: readonly string[]): string {
  const report = join(copy, 'node_modules/.mutants.json')
  rmSync(report, { force: true })
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = [
    vitest,
    'run',
    '--project',
    'short',
    '--bail=1',
    // Some bugs make a test wait for what never comes.
    '--testTimeout=120000',
    '--reporter=json',
    `--outputFile=${report}`,
    ...tests,
  ]
  const { stderr } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' })
  try {
    const { numFailedTests, success } = JSON.parse(readFileSync(report, 'utf8'))
    return numFailedTests > 0 ? `${numFailedTests} failed` : success ? 'passed' : 'cannot be loaded'
  } catch {
    return `did not run: ${stderr.trim().split('\n').at(-1)}`
  }
}

import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Options } from '../harness/options.ts'
import { POSTGRES_SETTINGS } from '../harness/postgres.ts'
import { machine } from './machine.ts'
import type { FinishedScenario } from './model.ts'
import { asMarkdown, scenarioText } from './tables.ts'

const HEADER = `# Results

Written by \`npm run bench\`; [README.md](README.md) explains the tables. Every figure is the median over
the rounds, with the smallest and the largest in parentheses. A quotient is taken round by round between
contenders that were measured within seconds of each other.
`

export function resultsPage({ mode, sizes, flags }: Options, finished: readonly FinishedScenario[]): string {
  const about: [string, string][] = [
    ['command', `\`npm run bench${flags === '' ? '' : ` -- ${flags}`}\``],
    ...machine(),
    [
      'rounds',
      `${sizes.rounds} of ${sizes.seconds} s, warm-ups of ${sizes.warmUpSeconds} s until it gets no faster (${mode})`,
    ],
    ['Baton', 'default configuration; SQLite in WAL with synchronous=FULL'],
    ['PostgreSQL settings', `fsync and synchronous_commit on, ${POSTGRES_SETTINGS.join(', ')}`],
    ['client', 'one process, keep-alive connections, one request in flight on each'],
  ]
  const page = [
    HEADER,
    asMarkdown({ head: ['', ''], body: about }),
    ...finished.map((scenario) =>
      scenarioText(scenario, {
        heading: (title) => `## ${title}\n\n\`--only ${scenario.name}\``,
        table: asMarkdown,
        item: '- ',
      }),
    ),
  ]
  return `${page.join('\n\n')}\n`
}

/**
 * Where a run writes its results page. The page in the repository is for complete runs: figures of different
 * runs are not comparable, and a partial run replaces it only on request.
 */
export class ResultsFile {
  readonly #file: string | undefined
  readonly #isWholePage: boolean
  readonly #say: (text: string) => void

  /** Refuses before anything is measured, not afterwards. */
  constructor({ only, mode, resultsFile }: Options, wholePage: URL, say: (text: string) => void) {
    const whole = only.length === 0 && mode !== 'quick'
    const page = fileURLToPath(wholePage)
    this.#file = resultsFile === undefined ? (whole ? page : undefined) : resolve(resultsFile)
    this.#isWholePage = this.#file === page
    this.#say = say
    if (this.#isWholePage && !whole) {
      throw new Error(`${resultsFile} is the page of whole runs; name another file for a part or a quick run`)
    }
  }

  /** `missing` says which parts of a complete run are absent. */
  write(page: () => string, missing: readonly string[]): void {
    if (this.#file === undefined) return
    if (this.#isWholePage && missing.length > 0) {
      this.#say(`no page written, since not everything was measured: ${missing.join('; ')}`)
      this.#say('--results with the name of another file writes one all the same')
      return
    }
    writeFileSync(this.#file, page())
    this.#say(`page written: ${this.#file}`)
  }
}

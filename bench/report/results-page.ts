import type { Options } from '../harness/options.ts'
import { POSTGRES_SETTINGS } from '../harness/postgres.ts'
import { machine } from './machine.ts'
import type { FinishedScenario } from './model.ts'
import { asMarkdown, scenarioText } from './tables.ts'

const HEADER = `# Results

Written by \`npm run bench\`; how to read it stands in [README.md](README.md). Every figure is the median over
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
    ['client', 'one process, keep-alive connections, one request under way on each'],
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

import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'

export interface TestedFile {
  /** Relative to the root of the repository. */
  readonly path: string
  readonly tests: number
  readonly failed: number
  readonly millis: number
}

/** Prints a line for each area after all tests: its files, its tests and their time. */
export default class AreaReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules.map((module): TestedFile => {
      const { duration, collectDuration } = module.diagnostic()
      const tests = [...module.children.allTests()]
      return {
        path: relative(process.cwd(), module.moduleId),
        tests: tests.length,
        failed: tests.filter((one) => one.result().state === 'failed').length,
        millis: duration + collectDuration,
      }
    })
    const lines = summaryByArea(files)
    // Vitest itself sums up a single area.
    if (lines.length > 2) process.stdout.write(`\n${lines.join('\n')}\n\n`)
  }
}

/**
 * `packages/server/test/http/pull.test.ts` belongs to `server/http`, `test/browser/links.test.ts` to
 * `browser`.
 */
export function areaOf(path: string): string {
  const [top, first, second, third, ...rest] = path.split('/')
  if (top !== 'packages') return first ?? path
  return second === 'test' && first === 'server' && rest.length > 0 ? `${first}/${third}` : (first ?? path)
}

/** Files run in parallel, so the seconds of all areas add up to more than the duration of a run. */
export function summaryByArea(files: readonly TestedFile[]): string[] {
  const areas = [...Map.groupBy(files, ({ path }) => areaOf(path))]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([area, of]) => ({
      area,
      files: String(of.length),
      tests: String(sum(of, ({ tests }) => tests)),
      failed: String(sum(of, ({ failed }) => failed)),
      seconds: (sum(of, ({ millis }) => millis) / 1000).toFixed(1),
    }))
  const heading = { area: 'area', files: 'files', tests: 'tests', failed: 'failed', seconds: 'seconds' }
  const rows = [heading, ...areas]
  const columns = Object.keys(heading) as (keyof typeof heading)[]
  const widths = new Map(columns.map((name) => [name, Math.max(...rows.map((row) => row[name].length))]))
  return rows.map((row) =>
    columns
      .map((name) => {
        const width = widths.get(name) ?? 0
        return name === 'area' ? ` ${row[name].padEnd(width)}` : row[name].padStart(width)
      })
      .join('  '),
  )
}

function sum(files: readonly TestedFile[], of: (file: TestedFile) => number): number {
  return files.reduce((total, file) => total + of(file), 0)
}

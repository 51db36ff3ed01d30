import type { LoadCalls } from '../load/load-process.ts'
import type { ScenarioReport } from '../report/model.ts'
import type { CleanUp } from './clean-up.ts'
import { type Helper, startHelper } from './helper-process.ts'
import type { Sizes } from './options.ts'

/** Writes progress to standard error, so that the table on standard output can be piped. */
export class Progress {
  readonly #startedAt = performance.now()
  #scenario = ''

  scenario(name: string): void {
    this.#scenario = name
  }

  say(text: string): void {
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000)
    const where = this.#scenario === '' ? '' : `${this.#scenario}: `
    process.stderr.write(`[${String(seconds).padStart(4)} s] ${where}${text}\n`)
  }
}

/** What a scenario receives: its sizes, its progress output and its clean-up scope. */
export interface Bench {
  sizes: Sizes
  progress: Progress
  cleanUp: CleanUp
}

export interface Scenario {
  /** The name for `--only`. */
  name: string
  title: string
  run(bench: Bench): Promise<ScenarioReport>
}

/** One load process per scenario, so that no scenario inherits another's heap. */
export function startLoad({ cleanUp }: Bench): Helper<LoadCalls> {
  return startHelper<LoadCalls>(new URL('../load/load-process.ts', import.meta.url), cleanUp)
}

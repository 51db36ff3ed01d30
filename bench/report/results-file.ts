import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Options } from '../harness/options.ts'

/**
 * Where a run writes its page. The page in the repository is for whole runs: figures of different runs are
 * not comparable, and a part of one must not take the place of a whole one without being told to.
 */
export class ResultsFile {
  readonly #file: string | undefined
  readonly #isWholePage: boolean
  readonly #say: (text: string) => void

  /** Refuses before anything is measured, not after. */
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

  /** `missing` says what of a whole run did not take place. */
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

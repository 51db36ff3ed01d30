import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shown } from '../show/table.ts'

const SHOWN_CHARACTERS = 200

/** What a command may report in addition to its exit code. */
export interface Report {
  readonly records?: number
  readonly reason?: string
  readonly retryAfterSeconds?: number
}

/** Files to which commands may write a report, because every language can write a file. */
export class ReportFiles implements AsyncDisposable {
  readonly #folder: string
  #last = 0

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async open(): Promise<ReportFiles> {
    return new ReportFiles(await mkdtemp(join(tmpdir(), 'baton-work-')))
  }

  next(): string {
    this.#last += 1
    return join(this.#folder, `${this.#last}.json`)
  }

  /** Reads and removes a report. Usually there is none. An unreadable report is ignored with a complaint. */
  async take(path: string, complain: (text: string) => void): Promise<Report> {
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch {
      return {}
    }
    await rm(path, { force: true })
    if (text.trim() === '') return {}
    try {
      const report: unknown = JSON.parse(text)
      if (typeof report === 'object' && report !== null && !Array.isArray(report))
        return usable(report, complain)
    } catch {
      // Reported below.
    }
    complain(
      `the report of the command is not a JSON object: ${shown(text.trim()).slice(0, SHOWN_CHARACTERS)}`,
    )
    return {}
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }
}

type Rule = readonly [rule: string, holds: (value: unknown) => boolean]

const rules: ReadonlyMap<string, Rule> = new Map<keyof Report, Rule>([
  ['records', ['a non-negative integer', (value) => Number.isSafeInteger(value) && Number(value) >= 0]],
  ['reason', ['a text', (value) => typeof value === 'string']],
  ['retryAfterSeconds', ['a non-negative number', (value) => typeof value === 'number' && value >= 0]],
])

/**
 * Returns the valid fields of a report, and complains about the others, so that the author of the command
 * notices.
 */
function usable(report: object, complain: (text: string) => void): Report {
  const sound = Object.entries(report).filter(([name, value]) => {
    const [rule, holds] = rules.get(name) ?? []
    if (holds === undefined || holds(value)) return true
    const got = JSON.stringify(value).slice(0, SHOWN_CHARACTERS)
    complain(`${name} in the report of the command must be ${rule}, got ${got}`)
    return false
  })
  return Object.fromEntries(sound)
}

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What a command may say beside its exit code. */
export interface Report {
  readonly records?: number
  readonly reason?: string
  readonly retryAfterSeconds?: number
}

/** Files that commands may write a report to: any language can write a file. */
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

  /** Reads and removes a report. None is the usual case; an unreadable one counts as none, and is told. */
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
      if (typeof report === 'object' && report !== null && !Array.isArray(report)) return report as Report
    } catch {
      // Told below.
    }
    complain(`the report of the command is not a JSON object: ${text.slice(0, 200)}`)
    return {}
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }
}

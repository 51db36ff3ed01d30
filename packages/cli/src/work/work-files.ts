import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { HandlingContext, WorkProgress } from '@baton/client'
import { shown } from '../terminal.ts'

/** How often the files are looked at while the command runs. */
const LOOK_MILLIS = 1000
const SHOWN_CHARACTERS = 200

export interface WorkFilePaths {
  readonly checkpoint: string
  readonly progress: string
}

/** The files in which a command says how far it is, because every language can write a file. */
export class WorkFiles {
  readonly #paths: WorkFilePaths
  readonly #context: HandlingContext
  readonly #complain: (text: string) => void
  readonly #timer: NodeJS.Timeout
  #checkpoint: string
  #progress = ''
  #looking = Promise.resolve()

  private constructor(paths: WorkFilePaths, context: HandlingContext, complain: (text: string) => void) {
    this.#paths = paths
    this.#context = context
    this.#complain = complain
    this.#checkpoint = context.checkpoint ?? ''
    this.#timer = setInterval(() => this.#lookNext(Date.now() - LOOK_MILLIS), LOOK_MILLIS)
  }

  /** The file of the checkpoint has what the last worker saved. */
  static async open(
    paths: WorkFilePaths,
    context: HandlingContext,
    complain: (text: string) => void,
  ): Promise<WorkFiles> {
    await writeFile(paths.checkpoint, context.checkpoint ?? '')
    return new WorkFiles(paths, context, complain)
  }

  /** The command has ended: what it wrote last goes with the settlement. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.#lookNext(Number.POSITIVE_INFINITY)
    await Promise.all(Object.values(this.#paths).map((path) => rm(path, { force: true })))
  }

  #lookNext(writtenBefore: number): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look(writtenBefore))
    return this.#looking
  }

  /** A file that was just written may be incomplete, so it is read at the next look. */
  async #look(writtenBefore: number): Promise<void> {
    const progress = await readWritten(this.#paths.progress, writtenBefore)
    if (progress !== undefined && progress !== this.#progress) {
      this.#progress = progress
      const reported = progressIn(progress)
      if (reported === undefined) this.#refuse('progress', 'must be a number or a JSON object', progress)
      else this.#context.progress(reported)
    }
    const checkpoint = await readWritten(this.#paths.checkpoint, writtenBefore)
    if (checkpoint === undefined || checkpoint === this.#checkpoint) return
    this.#checkpoint = checkpoint
    this.#context
      .saveCheckpoint(checkpoint === '' ? null : checkpoint)
      .catch((error: unknown) => error instanceof RangeError && this.#complain(error.message))
  }

  #refuse(what: string, rule: string, text: string): void {
    this.#complain(`the ${what} of the command ${rule}, got ${shown(text.trim()).slice(0, SHOWN_CHARACTERS)}`)
  }
}

/** Undefined: it is absent, or was written later. */
async function readWritten(path: string, before: number): Promise<string | undefined> {
  try {
    const { mtimeMs } = await stat(path)
    return mtimeMs > before ? undefined : await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}

/** `{"records": N, "note": "…"}`, or N alone. */
function progressIn(text: string): WorkProgress | undefined {
  try {
    const progress: unknown = JSON.parse(text)
    if (typeof progress === 'number') return { records: progress }
    return typeof progress === 'object' && progress !== null ? (progress as WorkProgress) : undefined
  } catch {
    return undefined
  }
}

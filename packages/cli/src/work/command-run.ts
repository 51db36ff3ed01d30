import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAX_KEPT_REASON_LENGTH } from '@baton/protocol/core'
import { shown } from '../terminal.ts'

/** Keeps the last bytes of a stream. */
class Tail {
  readonly #size: number
  #kept = Buffer.alloc(0)
  #isCut = false

  constructor(size: number) {
    this.#size = size
  }

  add(bytes: Buffer): void {
    const all = Buffer.concat([this.#kept, bytes])
    this.#isCut ||= all.length > this.#size
    this.#kept = all.subarray(Math.max(all.length - this.#size, 0))
  }

  /** Omits the truncated first line, if there are others. */
  get text(): string {
    const text = this.#kept.toString('utf8').trimEnd()
    if (!this.#isCut) return text
    const firstWhole = text.indexOf('\n') + 1
    return `…${text.slice(firstWhole)}`
  }
}

/**
 * A process that ended may have left child processes that hold its stderr open. Their output is not awaited
 * for longer than this.
 */
const LAST_WORDS_MILLIS = 1000
/** The longest kept reason, minus space for the exit code in front. */
const KEPT_STDERR_BYTES = MAX_KEPT_REASON_LENGTH - 96
/** Windows has no process groups to signal. */
const hasGroups = process.platform !== 'win32'

export interface StderrSink {
  add(bytes: Buffer): void
  end(): void
}

interface CommandSpec {
  readonly command: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Written to the stdin of the command. */
  readonly input: string
  /** Receives the stderr of the command. */
  readonly stderr: StderrSink
  /** Aborting it ends the command. */
  readonly signal: AbortSignal
  /** The time between SIGTERM and SIGKILL. */
  readonly killAfterMillis: number
}

export interface CommandEnd {
  /** Null if a signal ended the command. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of its stderr. */
  readonly stderr: string
}

/** The command could not be started. The partition is not the cause. */
export class CommandUnusable extends Error {
  override name = 'CommandUnusable'
  readonly code: string

  constructor(command: string, cause: NodeJS.ErrnoException) {
    super(`${command} cannot be run (${cause.code})`, { cause })
    this.code = cause.code ?? ''
  }
}

/**
 * Runs a command to its end, in its own process group. A Ctrl-C at the terminal does not reach the command,
 * and ending it also ends its child processes.
 */
export async function runCommand(spec: CommandSpec): Promise<CommandEnd> {
  const { command, args, env, input, stderr, signal, killAfterMillis } = spec
  const child = spawn(command, args, { env, stdio: ['pipe', 'inherit', 'pipe'], detached: hasGroups })
  // Before anything else: an error without a listener would end the worker.
  const exited = once(child, 'exit')
  const tail = new Tail(KEPT_STDERR_BYTES)
  // If there is no file descriptor for them, the child has no streams.
  child.stderr?.on('data', (bytes: Buffer) => {
    tail.add(bytes)
    stderr.add(bytes)
  })
  // The command may exit without reading its stdin.
  child.stdin?.on('error', () => {})
  child.stdin?.end(input)
  let kill: NodeJS.Timeout | undefined
  const end = () => {
    signalGroup(child, 'SIGTERM')
    kill = setTimeout(() => signalGroup(child, 'SIGKILL'), killAfterMillis)
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  try {
    const closed = once(child, 'close').catch(() => {})
    const [code, endedBy] = (await exited) as [number | null, NodeJS.Signals | null]
    await Promise.race([closed, pauseUnref(LAST_WORDS_MILLIS)])
    return { code, signal: endedBy, stderr: tail.text }
  } catch (error) {
    throw new CommandUnusable(command, error as NodeJS.ErrnoException)
  } finally {
    clearTimeout(kill)
    signal.removeEventListener('abort', end)
    child.stderr?.destroy()
    stderr.end()
    // Its child processes must not continue with a partition that another worker may have.
    if (signal.aborted) signalGroup(child, 'SIGKILL')
  }
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    if (hasGroups) process.kill(-child.pid, signal)
    else child.kill(signal)
  } catch {
    // The process has already ended.
  }
}

function pauseUnref(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis).unref())
}

const SHOWN_CHARACTERS = 200

/** What a command may report in addition to its exit code. */
export interface Report {
  readonly records?: number
  readonly reason?: string
  readonly retryAfterSeconds?: number
}

/** Files to which commands may write a report, because every language can write a file. */
export class ReportFiles implements AsyncDisposable {
  #folder: string
  #last = 0

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async open(): Promise<ReportFiles> {
    return new ReportFiles(await newFolder())
  }

  /** Systems remove old temporary folders, also this one if the worker was idle for days. */
  async next(): Promise<string> {
    if (!existsSync(this.#folder)) this.#folder = await newFolder()
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

function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'baton-work-'))
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
  const valid = Object.entries(report).filter(([name, value]) => {
    const [rule, holds] = rules.get(name) ?? []
    if (holds === undefined || holds(value)) return true
    const got = JSON.stringify(value).slice(0, SHOWN_CHARACTERS)
    complain(`${name} in the report of the command must be ${rule}, got ${got}`)
    return false
  })
  return Object.fromEntries(valid)
}

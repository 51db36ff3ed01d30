import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { MAX_KEPT_REASON_LENGTH } from '@baton/protocol/core'

/** The last bytes of a stream. */
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

  /** Without the line that the cut went through, if there are others. */
  get text(): string {
    const text = this.#kept.toString('utf8').trimEnd()
    if (!this.#isCut) return text
    const firstWhole = text.indexOf('\n') + 1
    return `…${text.slice(firstWhole)}`
  }
}

/** A process that ended may have left others that hold its stderr open: what they still write is not waited for. */
const LAST_WORDS_MILLIS = 1000
/** As much as is kept of a reason, in which the exit code stands before it. */
const KEPT_STDERR_BYTES = MAX_KEPT_REASON_LENGTH - 96
/** On Windows there are no process groups to signal. */
const hasGroups = process.platform !== 'win32'

export interface StderrSink {
  add(bytes: Buffer): void
  end(): void
}

interface CommandSpec {
  readonly command: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** What the command reads from its stdin. */
  readonly input: string
  /** Gets what the command writes to its stderr. */
  readonly stderr: StderrSink
  /** Aborting it ends the command. */
  readonly signal: AbortSignal
  /** From SIGTERM to SIGKILL. */
  readonly killAfterMillis: number
}

export interface CommandEnd {
  /** Null when a signal ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of what it wrote to stderr. */
  readonly stderr: string
}

/** The command could not be started at all: that is nobody's partition's fault. */
export class CommandUnusable extends Error {
  override name = 'CommandUnusable'
  readonly code: string

  constructor(command: string, cause: NodeJS.ErrnoException) {
    super(`${command} cannot be run (${cause.code})`, { cause })
    this.code = cause.code ?? ''
  }
}

/**
 * Runs a command to its end. It leads a process group of its own: a Ctrl-C at the terminal does not reach it, and
 * ending it ends what it started.
 */
export async function runCommand(spec: CommandSpec): Promise<CommandEnd> {
  const { command, args, env, input, stderr, signal, killAfterMillis } = spec
  const child = spawn(command, args, { env, stdio: ['pipe', 'inherit', 'pipe'], detached: hasGroups })
  const tail = new Tail(KEPT_STDERR_BYTES)
  child.stderr.on('data', (bytes: Buffer) => {
    tail.add(bytes)
    stderr.add(bytes)
  })
  // A command need not read its stdin.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  let kill: NodeJS.Timeout | undefined
  const end = () => {
    signalGroup(child, 'SIGTERM')
    kill = setTimeout(() => signalGroup(child, 'SIGKILL'), killAfterMillis)
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  try {
    const closed = once(child, 'close').catch(() => {})
    const [code, endedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    await Promise.race([closed, pauseUnref(LAST_WORDS_MILLIS)])
    return { code, signal: endedBy, stderr: tail.text }
  } catch (error) {
    throw new CommandUnusable(command, error as NodeJS.ErrnoException)
  } finally {
    clearTimeout(kill)
    signal.removeEventListener('abort', end)
    child.stderr.destroy()
    stderr.end()
    // What it started must not go on with a partition that is in other hands.
    if (signal.aborted) signalGroup(child, 'SIGKILL')
  }
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    if (hasGroups) process.kill(-child.pid, signal)
    else child.kill(signal)
  } catch {
    // It has ended already.
  }
}

function pauseUnref(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis).unref())
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { programArguments } from '../../../../test/support/programs.ts'

export interface BatonOptions {
  readonly url?: string
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

export interface BatonEnd {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command to its end. */
export async function baton(args: readonly string[], options: BatonOptions = {}): Promise<BatonEnd> {
  return startBaton(args, options).ended
}

export interface RunningBaton {
  readonly process: ChildProcess
  /** What it has written so far. */
  readonly stdout: string
  readonly stderr: string
  readonly ended: Promise<BatonEnd>
  /** Sends it to the whole process group, as a terminal does on Ctrl-C. */
  readonly ctrlC: () => void
}

export function startBaton(
  args: readonly string[],
  { url, input = '', env = {} }: BatonOptions = {},
): RunningBaton {
  const child = spawn(process.execPath, [...programArguments('command'), ...args], {
    env: { ...process.env, NO_COLOR: '1', ...(url === undefined ? {} : { BATON_URL: url }), ...env },
    // A separate process group, as a shell gives to each command.
    detached: true,
  })
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (written: string) => {
    stdout += written
  })
  child.stderr.setEncoding('utf8').on('data', (written: string) => {
    stderr += written
  })
  return {
    process: child,
    get stdout() {
      return stdout
    },
    get stderr() {
      return stderr
    },
    ended: once(child, 'close').then(([code]) => ({ code, stdout, stderr })),
    ctrlC: () => process.kill(-(child.pid ?? 0), 'SIGINT'),
  }
}

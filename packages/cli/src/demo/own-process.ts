import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import sea from 'node:sea'

/** Starts a command of `baton` as another process: the same program as this one. */
export function spawnBaton(args: readonly string[], options: SpawnOptions): ChildProcess {
  // The one-file command is the executable itself; otherwise Node runs a script.
  const script = sea.isSea() ? [] : [...process.execArgv, process.argv[1] ?? '']
  return spawn(process.execPath, [...script, ...args], { ...options, env: withoutSettings() })
}

/** The demo must not use the database or the tokens of a real service. */
function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('BATON_')))
}

export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { programArguments } from './programs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface SpawnOptions {
  readonly environment?: Readonly<Record<string, string>>
  /** Where its log goes: to a pipe, or to a file that is already open. */
  readonly stderr?: 'pipe' | number
  /** The limit of open files; by default that of this process. */
  readonly openFiles?: number
}

/** Starts the service in its own process. */
export function spawnService(args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const command = [process.execPath, ...programArguments('service'), ...args]
  const limited = ['-c', `ulimit -n ${options.openFiles}; exec "$0" "$@"`, ...command]
  if (options.openFiles !== undefined) return spawnInRoot('bash', limited, options)
  return spawnInRoot(process.execPath, command.slice(1), options)
}

/** The environment without Baton settings that the tests may have been started with. */
export function spawnInRoot(
  command: string,
  args: readonly string[],
  { environment = {}, stderr = 'pipe' }: SpawnOptions = {},
): ChildProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('BATON_'))
  return spawn(command, args, {
    cwd: ROOT,
    env: { ...Object.fromEntries(inherited), ...environment },
    stdio: ['ignore', 'pipe', stderr],
  })
}

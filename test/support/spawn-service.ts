import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { programArguments } from './programs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface SpawnOptions {
  readonly environment?: Readonly<Record<string, string>>
  /** Where its log goes: to whoever asks the process for it, or to a file that is open already. */
  readonly stderr?: 'pipe' | number
  /** How many files it may open; as many as we may, unless it is said. */
  readonly openFiles?: number
}

/** The service in a process of its own. */
export function spawnService(args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const command = [process.execPath, ...programArguments('service'), ...args]
  const limited = ['-c', `ulimit -n ${options.openFiles}; exec "$0" "$@"`, ...command]
  if (options.openFiles !== undefined) return spawnInRoot('bash', limited, options)
  return spawnInRoot(process.execPath, command.slice(1), options)
}

/** Without the settings that the tests themselves may have been started with. */
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

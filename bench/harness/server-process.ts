import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { CleanUp } from './clean-up.ts'

export interface ServerProcess {
  pid: number
  /** What the ready pattern captured, e.g. the URL. */
  ready: string
  stop(): Promise<void>
}

export interface ServerCommand {
  name: string
  command: string
  args: readonly string[]
  env?: Readonly<Record<string, string>>
  /** Matched against standard output and error; its first group becomes `ready`. */
  readyPattern: RegExp
  readyWithinSeconds?: number
  /** Log lines to print: an answer of 500 alone does not explain its cause. */
  alarming?: RegExp
}

const STOP_WITHIN_MS = 15_000
const KEPT_OUTPUT = 8_000

/** Starts a server, waits until it is ready, and registers its clean-up. */
export async function startServer(server: ServerCommand, cleanUp: CleanUp): Promise<ServerProcess> {
  const child = spawn(server.command, server.args, {
    env: { ...inheritedEnvironment(), ...server.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stop = () => endProcess(child)
  cleanUp.add(stop)
  const ready = await readyLine(child, server)
  if (child.pid === undefined) throw new Error(`${server.name} has no process id`)
  return { pid: child.pid, ready, stop }
}

/** Removes BATON_ variables of the caller's environment, which must not configure the measured service. */
function inheritedEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('BATON_')))
}

function readyLine(child: ChildProcess, server: ServerCommand): Promise<string> {
  const seconds = server.readyWithinSeconds ?? 60
  return new Promise((resolve, reject) => {
    let output = ''
    const fail = (why: string) => reject(new Error(`${server.name} ${why}\n${output.trim()}`.trim()))
    const timer = setTimeout(() => fail(`was not ready within ${seconds} s`), seconds * 1000)
    const read = (chunk: Buffer) => {
      // Keep reading while the server runs: a full pipe would block it at its next line.
      for (const line of chunk.toString('utf8').split('\n')) {
        if (server.alarming?.test(line)) process.stderr.write(`${server.name}: ${line}\n`)
      }
      if (output.length > KEPT_OUTPUT) return
      output += chunk.toString('utf8')
      const match = server.readyPattern.exec(output)
      if (!match) return
      clearTimeout(timer)
      resolve(match[1] ?? match[0])
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    child.once('error', (error) => {
      clearTimeout(timer)
      fail(error.message)
    })
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      fail(`ended before it was ready (${signal ?? `exit code ${code}`})`)
    })
  })
}

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
  await ended
  clearTimeout(timer)
}

import { execFileSync, spawnSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { type CleanUp, cleanUpOnInterrupt } from '../bench/harness/clean-up.ts'
import { root } from './packages.ts'

// What the checks of the image, of the systemd unit and of a release share.

/** Ends the process with code 2 if a program is missing, and names the Debian packages to install. */
export function requireRootAnd(programs: readonly string[], packages: string): void {
  const missing = programs.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  const faults = [
    ...(process.getuid?.() === 0 ? [] : ['this command must run as root']),
    ...(missing.length === 0
      ? []
      : [`not found: ${missing.join(', ')}; on Debian: apt-get install ${packages}`]),
  ]
  if (faults.length === 0) return
  process.stderr.write(`${faults.join('\n')}\n`)
  process.exit(2)
}

/** Runs a program to its end. Returns what it printed, without the last line break. */
export function run(command: string, ...args: string[]): string {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 } as const
  return execFileSync(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] }).trimEnd()
}

/** Installs Debian's smallest system into a folder. */
export function installDebian(folder: string, packages: readonly string[]): void {
  run('debootstrap', '--variant=minbase', `--include=${packages.join(',')}`, 'bookworm', folder)
}

const began = performance.now()

/** Prints a line of the transcript, with the seconds since the start. */
export function say(text: string): void {
  process.stdout.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}\n`)
}

export function check(claim: string, holds: boolean, seen?: unknown): void {
  if (!holds)
    throw new Error(`not true: ${claim}${seen === undefined ? '' : `; seen: ${JSON.stringify(seen)}`}`)
  say(claim)
}

/** Calls `look` until it returns true. Throws after a minute. */
export async function eventually(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 60_000; performance.now() < end; await pause(50)) {
    if (await look()) return
  }
  throw new Error(`not within a minute: ${what}`)
}

/** Resolves when the service answers that it is ready. */
export async function ready(url: string): Promise<void> {
  const isReady = async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true
  await eventually(`${url} is ready`, isReady)
}

/** How many partitions of the task of README.md's first hand-off are done. */
export async function doneInFirstHandOff(url: string): Promise<number> {
  const answer = await fetch(`${url}/tasks/orders-2026-03`)
  const { partitions } = (await answer.json()) as { partitions: { done: number } }
  return partitions.done
}

/** Runs a check to its end, and cleans up after it. */
export async function runCheck(cleanUp: CleanUp, steps: () => Promise<void>): Promise<void> {
  cleanUpOnInterrupt([cleanUp])
  try {
    await steps()
    say('passed')
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
    process.stderr.write(`${stdout.slice(-4000)}${stderr.slice(-4000)}\n${(error as Error).message}\n`)
    process.exitCode = 1
  } finally {
    await cleanUp.run()
  }
}

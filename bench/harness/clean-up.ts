import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Below the range from which Linux takes the ports of outgoing connections. */
const [FIRST_PORT, PORTS] = [10_000, 22_000]

/**
 * Returns a loopback port that is free now, for servers that cannot pick one themselves. An outgoing
 * connection does not take it before the server starts, or while it restarts.
 */
export async function freePort(): Promise<number> {
  while (true) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    const probe = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => probe.close(resolve))
    if (isFree) return port
  }
}

type Undo = () => Promise<void> | void

/**
 * Stops everything that was started, in reverse order, also when a scenario throws or the run is interrupted.
 * Scopes are nested: one per run, one per scenario.
 */
export class CleanUp {
  #undos: Undo[] = []

  add(undo: Undo): void {
    this.#undos.push(undo)
  }

  async run(): Promise<void> {
    for (let undo = this.#undos.pop(); undo; undo = this.#undos.pop()) {
      try {
        await undo()
      } catch (error) {
        process.stderr.write(`clean-up failed: ${error instanceof Error ? error.message : String(error)}\n`)
      }
    }
  }
}

/** On Ctrl-C and SIGTERM, stops the started servers before the run ends. */
export function cleanUpOnInterrupt(cleanUps: readonly CleanUp[]): void {
  let interrupted = false
  const interrupt = (signal: NodeJS.Signals) => {
    if (interrupted) return
    interrupted = true
    process.stderr.write(`\n${signal}: stopping what was started\n`)
    const all = [...cleanUps].reverse().reduce((done, next) => done.then(() => next.run()), Promise.resolve())
    all.finally(() => process.exit(130))
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
}

/**
 * Creates a temporary folder and removes it after the scenario. It is on a real disk only if TMPDIR is: see
 * the README.
 */
export function temporaryFolder(purpose: string, cleanUp: CleanUp): string {
  const folder = mkdtempSync(join(tmpdir(), `baton-bench-${purpose}-`))
  // Servers that refuse to run as root switch to their own user and must be able to reach their folder in
  // here.
  chmodSync(folder, 0o711)
  cleanUp.add(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }))
  return folder
}

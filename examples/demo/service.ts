import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url))

/** Short enough to watch leases expire and attempts run out. */
const SETTINGS = [
  '--instance-id',
  'baton-1',
  '--lease-seconds',
  '15',
  '--backoff-seconds',
  '4',
  '--max-attempts',
  '3',
  '--log-level',
  'warn',
]

export interface DemoService {
  readonly url: string
  /** Ends the service and removes its store. */
  stop(): Promise<void>
}

/** The service as users start it, on a store that is deleted after the demo. */
export async function startService(port: string): Promise<DemoService> {
  const data = mkdtempSync(join(tmpdir(), 'baton-demo-'))
  const child = spawn(
    process.execPath,
    ['--conditions=baton-source', MAIN, '--port', port, '--data', data, ...SETTINGS],
    // Ctrl-C reaches the whole process group. In its own group, the service stops last, after its clients.
    { stdio: ['ignore', 'pipe', 'inherit'], detached: true },
  )
  const stop = async () => {
    await end(child)
    rmSync(data, { recursive: true, force: true })
  }
  const lines = createInterface({ input: child.stdout })
  for await (const line of lines) {
    const url = /^Baton listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) return { url, stop }
  }
  await stop()
  throw new Error('the service did not start')
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

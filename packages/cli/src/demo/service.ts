import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { end, spawnBaton } from './own-process.ts'

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

interface DemoService {
  readonly url: string
  /** Ends the service and removes its store. */
  stop(): Promise<void>
}

/**
 * The service as users start it, on a store that is deleted after the demo. Undefined if it did not start; it
 * has then printed the reason.
 */
export async function startService(port: number): Promise<DemoService | undefined> {
  const data = mkdtempSync(join(tmpdir(), 'baton-demo-'))
  const child = spawnBaton(
    ['serve', '--port', String(port), '--data', data, ...SETTINGS],
    // Ctrl-C reaches the whole process group. In its own group, the service stops last, after its clients.
    { stdio: ['ignore', 'pipe', 'inherit'], detached: true },
  )
  const stop = async () => {
    await end(child, 'SIGTERM')
    rmSync(data, { recursive: true, force: true })
  }
  if (child.stdout !== null) {
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^Baton listening on (\S+)$/.exec(line)?.[1]
      if (url !== undefined) return { url, stop }
    }
  }
  await stop()
  return undefined
}

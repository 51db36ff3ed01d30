import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../bench/harness/clean-up.ts'
import { NodeProcess } from '../../postgres/support/node-process.ts'
import { PostgresServer } from '../../postgres/support/postgres-server.ts'
import { until } from '../../support/until.ts'

export type StoreName = 'sqlite' | 'postgres'

/**
 * Low enough that moderate floods reach them. Attackers take leases and disconnect: these leases expire soon,
 * and attempts are not limited.
 */
const LOW: readonly string[] = [
  ...['--max-connections', '600', '--max-connections-per-address', '300'],
  ...['--max-waiting-pulls-per-caller', '100', '--max-received-mb', '48', '--max-unsent-mb', '16'],
  ...['--request-seconds', '5', '--answer-seconds', '2'],
  ...['--lease-seconds', '3', '--max-attempts', '1000000', '--backoff-seconds', '0'],
  ...['--backoff-max-seconds', '0', '--log-level', 'warn'],
]

/** The state of the process, seen from outside. */
export interface Footprint {
  readonly residentMb: number
  readonly heapMb: number
  /** Open files and connections; null if the system does not report them. */
  readonly handles: number | null
  readonly timers: number
  readonly connections: number
  readonly waitingPulls: number
  readonly receivedBytes: number
  readonly streams: number
}

/** The service under siege. */
export class Besieged {
  readonly node: NodeProcess
  readonly #inspectPort: number
  readonly #dispose: () => Promise<void>

  private constructor(node: NodeProcess, inspectPort: number, dispose: () => Promise<void>) {
    this.node = node
    this.#inspectPort = inspectPort
    this.#dispose = dispose
  }

  static async start(store: StoreName, settings: readonly string[] = LOW): Promise<Besieged> {
    const inspectPort = await freePort()
    const start = async (args: readonly string[]) => {
      const environment = { NODE_OPTIONS: `--inspect-port=${inspectPort}` }
      const node = await NodeProcess.prepare('besieged', [...settings, ...args], environment)
      await node.start()
      return node
    }
    if (store === 'sqlite') {
      const folder = await mkdtemp(join(tmpdir(), 'baton-siege-'))
      const node = await start(['--data', folder])
      return new Besieged(node, inspectPort, () => rm(folder, { recursive: true, force: true }))
    }
    const server = await PostgresServer.start()
    const { url } = await server.createDatabase()
    const node = await start(['--database-url', url])
    return new Besieged(node, inspectPort, () => server.dispose())
  }

  get url(): string {
    return this.node.url
  }

  get port(): number {
    return Number(new URL(this.node.url).port)
  }

  async metrics(): Promise<string> {
    return (await fetch(`${this.url}/metrics`)).text()
  }

  async footprint(): Promise<Footprint> {
    const text = await this.metrics()
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
    const mebibytes = (name: string) => Math.round(value(name) / 2 ** 20)
    return {
      residentMb: mebibytes('baton_process_resident_memory_bytes'),
      heapMb: mebibytes('baton_process_heap_used_bytes'),
      handles: await this.#handles(),
      timers: value('baton_process_timers'),
      connections: value('baton_connections'),
      waitingPulls: value('baton_waiting_pulls'),
      receivedBytes: value('baton_received_bytes'),
      streams: value('baton_event_streams'),
    }
  }

  /** How often each bound was reached. */
  async boundsMet(): Promise<Record<string, number>> {
    const found = (await this.metrics()).matchAll(/^baton_bounds_met_total\{bound="([\w-]+)"\} (\d+)$/gm)
    return Object.fromEntries([...found].map(([, bound, times]) => [bound, Number(times)]))
  }

  /**
   * V8 keeps what is no longer used until it needs the memory. Collecting it shows what the process still
   * holds.
   */
  async collectGarbage(): Promise<void> {
    if (this.node.pid === undefined) return
    // Makes Node.js open its inspector.
    process.kill(this.node.pid, 'SIGUSR1')
    const targets = `http://127.0.0.1:${this.#inspectPort}/json`
    const answer = await until(() => fetch(targets).catch(() => undefined))
    const [target] = (await answer.json()) as { webSocketDebuggerUrl: string }[]
    const inspector = new WebSocket(target?.webSocketDebuggerUrl ?? '')
    await new Promise((resolve) => inspector.addEventListener('open', resolve))
    const collected = new Promise((resolve) => inspector.addEventListener('message', resolve))
    inspector.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }))
    await collected
    inspector.close()
  }

  async dispose(): Promise<void> {
    await this.node.kill()
    await this.#dispose()
  }

  async #handles(): Promise<number | null> {
    try {
      return (await readdir(`/proc/${this.node.pid}/fd`)).length
    } catch {
      return null
    }
  }
}

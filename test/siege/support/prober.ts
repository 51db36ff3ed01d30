import { setTimeout as pause } from 'node:timers/promises'
import { dial, readUntil } from '../../support/hostile-client.ts'

const PROBE_EVERY_MILLIS = 200
/** Generous: this machine may be busy with the floods themselves. */
const PATIENCE_MILLIS = 60_000

/** Asks whether the service lives, over a new connection each time, as whoever runs it does. */
export class Prober {
  readonly #port: number
  readonly #millis: number[] = []
  readonly findings: string[] = []
  #isStopped = false

  constructor(port: number) {
    this.#port = port
  }

  stop(): void {
    this.#isStopped = true
  }

  async run(): Promise<void> {
    while (!this.#isStopped) {
      await this.#probe()
      await pause(PROBE_EVERY_MILLIS)
    }
  }

  summary() {
    const sorted = this.#millis.toSorted((a, b) => a - b)
    const rounded = (millis: number | undefined) => Math.round(millis ?? 0)
    return {
      count: sorted.length,
      slowestMillis: rounded(sorted.at(-1)),
      medianMillis: rounded(sorted[Math.floor(sorted.length / 2)]),
    }
  }

  async #probe(): Promise<void> {
    const began = performance.now()
    const socket = await dial(this.#port)
    const timer = setTimeout(() => socket.destroy(), PATIENCE_MILLIS)
    socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    const text = await readUntil(socket, (seen) => seen.includes('\r\n\r\n'))
    clearTimeout(timer)
    socket.destroy()
    if (!text.startsWith('HTTP/1.1 200')) this.findings.push(`/livez was answered ${JSON.stringify(text)}`)
    this.#millis.push(performance.now() - began)
  }
}

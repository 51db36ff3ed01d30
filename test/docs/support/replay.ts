import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type App, openApp } from '../../../packages/server/src/app.ts'
import { readCommandLine } from '../../../packages/server/src/command-line.ts'
import { readSettings } from '../../../packages/server/src/settings.ts'
import { quiet } from '../../support/quiet-log.ts'
import type { ShownRequest } from './transcript.ts'

export interface RealReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** A real service on a real port. Its clock is stopped and advances only on request. */
export class ReplayedService {
  readonly #app: App
  readonly #folder: string
  readonly #clock: { now: number }

  private constructor(app: App, folder: string, clock: { now: number }) {
    this.#app = app
    this.#folder = folder
    this.#clock = clock
  }

  static async open(flags: readonly string[]): Promise<ReplayedService> {
    const folder = await mkdtemp(join(tmpdir(), 'baton-docs-'))
    const always = ['--port', '0', '--data', folder, '--instance-id', 'node-1']
    const { config } = readSettings(readCommandLine([...always, ...flags]).given, {})
    const clock = { now: Date.parse('2026-03-01T12:00:00Z') }
    const app = await openApp(config, { log: quiet, clock: () => clock.now })
    await app.http.listen({ host: config.host, port: config.port })
    return new ReplayedService(app, folder, clock)
  }

  async close(): Promise<void> {
    await this.#app.close()
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** Runs the service's periodic work now, so that no reply depends on when it last ran. */
  async pass(seconds: number): Promise<void> {
    await this.#noteInstances()
    this.#clock.now += seconds * 1000
    await this.#app.store.sweep({ limit: 1000, mayExpireLeases: () => true })
    await this.#noteInstances()
  }

  /** Requesting all instances stores their heartbeats and that of the node. */
  async #noteInstances(): Promise<void> {
    await this.#app.handOff.instances({ after: null, limit: 1 })
  }

  send({ method, path, headers, body }: ShownRequest): Promise<RealReply> {
    const { port } = this.#app.http.server.address() as AddressInfo
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        { host: '127.0.0.1', port, method, path, headers: Object.fromEntries(headers), agent: false },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => {
            text += chunk
          })
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
          )
        },
      )
      request.on('error', reject)
      request.end(body === '' ? undefined : body)
    })
  }
}

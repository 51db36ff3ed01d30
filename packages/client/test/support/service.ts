import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { openApp } from '../../../server/src/app.ts'
import { readCommandLine } from '../../../server/src/command-line.ts'
import { pathPrefixOf } from '../../../server/src/config.ts'
import { createLog } from '../../../server/src/run-service.ts'
import { readSettings } from '../../../server/src/settings.ts'

export interface Service {
  readonly url: string
  readonly port: number
}

/**
 * A complete service on its own port and data, started with command-line flags, for the duration of a test.
 * It runs in the process of the test, because starting another process is slow. `RestartableService` is for
 * tests that kill, stop or restart it.
 */
export async function startService(...flags: string[]): Promise<Service> {
  const { close, ...service } = await open(flags)
  onTestFinished(close)
  return service
}

/** For all tests of a file that do not pull, or pull everything. */
export function sharedService(): () => Service {
  let service: Awaited<ReturnType<typeof open>> | undefined
  beforeAll(async () => {
    service = await open([])
  })
  afterAll(async () => {
    await service?.close()
  })
  return () => service as Service
}

async function open(flags: readonly string[]): Promise<Service & { close(): Promise<void> }> {
  const data = await mkdtemp(join(tmpdir(), 'baton-service-'))
  const { given } = readCommandLine(['--data', data, '--log-level', 'warn', ...flags])
  const { config } = readSettings(given, {})
  const app = await openApp(config, { log: createLog(config.logLevel), timeouts: { closeMillis: 1000 } })
  await app.http.listen({ host: config.host, port: 0 })
  const { port } = app.http.server.address() as AddressInfo
  return {
    url: `http://${config.host}:${port}${pathPrefixOf(config)}`,
    port,
    close: async () => {
      await app.close()
      await rm(data, { recursive: true, force: true })
    },
  }
}

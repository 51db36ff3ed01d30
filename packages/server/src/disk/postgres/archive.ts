import {
  type ArchiveSource,
  type ArchiveTarget,
  notEmpty,
  type PerSection,
  perSection,
  type RowBatch,
  refuseMissing,
  type Section,
  sections,
} from '../../handoff/archived.ts'
import { NODE_FRESH_MILLIS } from '../../handoff/heartbeats.ts'
import { StoreRefused } from '../../handoff/store.ts'
import type { NextIds } from '../../handoff/stored.ts'
import { refuseOtherVersion } from '../schema-version.ts'
import { insert } from '../statements.ts'
import type { Table } from '../table.ts'
import { fence, NOW } from './leader-row.ts'
import { versionOf } from './migrate.ts'
import { CannotConnect } from './session/connect-faults.ts'
import type { Connection, Row, Statement } from './session/connection.ts'
import { Connector, parseDatabaseUrl } from './session/connector.ts'
import { asRefused } from './session/failures.ts'
import { archived, arraysOf, asJson, textOf } from './tables.ts'

const BATCH = 1000

/** For long transactions of many statements: sequential scans are allowed and there is no timeout. */
const SETTINGS = `SET LOCAL search_path = pg_catalog; SET LOCAL array_nulls = on; SET LOCAL statement_timeout = 0;
  SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL jit = off`

/**
 * Reads one consistent snapshot, even while nodes write. The connection must not be used for anything else.
 */
export async function postgresSource(connection: Connection): Promise<ArchiveSource> {
  const run = (text: string) => connection.run({ text })
  await run(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${SETTINGS}`)
  const [flushed] = await run('SELECT * FROM baton.flushed')
  const entries = await connection.run({
    text: 'SELECT body FROM baton.entry WHERE number > $1 AND body IS NOT NULL ORDER BY number',
    values: [flushed?.['number'] ?? 0],
  })
  return {
    nextIds: readNextIds(flushed),
    counts: await countRows(connection),
    unflushed: entries.map(({ body }) => body as string),
    async *batches() {
      for (const section of sections) yield* batchesOf(connection, section)
    },
  }
}

async function* batchesOf(connection: Connection, section: Section): AsyncIterable<RowBatch> {
  const table = archived[section]
  const select = `SELECT ${asJson(table)} AS row FROM ${table.path} ORDER BY ${table.order}`
  await connection.run({ text: `DECLARE archive NO SCROLL CURSOR FOR ${select}` })
  while (true) {
    const found = await connection.run({ text: `FETCH ${BATCH} FROM archive` })
    if (found.length === 0) break
    yield { section, rows: found.map(({ row }) => table.read(row as unknown[])) } as unknown as RowBatch
  }
  await connection.run({ text: 'CLOSE archive' })
}

async function countRows(connection: Connection): Promise<PerSection<number>> {
  const counts = sections.map((section) => `(SELECT count(*) FROM ${archived[section].path}) AS "${section}"`)
  const [row] = await connection.run({ text: `SELECT ${counts.join(', ')}` })
  return perSection((section) => row?.[section] as number)
}

/**
 * `leaderTerm` is the term of this program's leadership. If a node takes over during the import, nothing is
 * imported.
 */
export function postgresTarget(connection: Connection, leaderTerm: string): ArchiveTarget {
  return {
    async fill(batches, nextIds, counts) {
      await connection.run({ text: `BEGIN ISOLATION LEVEL READ COMMITTED; ${SETTINGS}` })
      try {
        await connection.run(fence(leaderTerm))
        const { tasks: found } = await countRows(connection)
        if (found > 0) throw notEmpty(found)
        for (const section of sections)
          await connection.run({ text: `DELETE FROM ${archived[section].path}` })
        for await (const batch of batches) await connection.run(insertStatement(batch))
        await connection.run(nextIdsStatement(nextIds))
        refuseMissing(counts, await countRows(connection))
        await connection.run({ text: 'COMMIT' })
      } catch (error) {
        await connection.run({ text: 'ROLLBACK' }).catch(() => {})
        throw error
      }
    },
  }
}

function insertStatement({ section, rows }: RowBatch): Statement {
  const table = archived[section] as Table<object>
  return { text: textOf(insert(table)), values: arraysOf(table, rows) }
}

const nextIdColumns: Readonly<Record<keyof NextIds, string>> = {
  task: 'next_task',
  lane: 'next_lane',
  partition: 'next_partition',
  event: 'next_event',
}
const nextIdFields = Object.keys(nextIdColumns) as (keyof NextIds)[]

const readNextIds = (flushed: Row | undefined): NextIds =>
  Object.fromEntries(
    nextIdFields.map((field) => [field, flushed?.[nextIdColumns[field]]]),
  ) as unknown as NextIds

const nextIdsStatement = (nextIds: NextIds): Statement => ({
  text: `UPDATE baton.flushed SET ${nextIdFields.map((field, at) => `${nextIdColumns[field]} = $${at + 1}`).join(', ')}`,
  values: nextIdFields.map((field) => nextIds[field]),
})

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

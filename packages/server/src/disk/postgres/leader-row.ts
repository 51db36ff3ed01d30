import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenedSharedDisk } from '../../handoff/disk.ts'
import type { Log } from '../../handoff/log.ts'
import { NotLeader, StoreUnavailable } from '../../handoff/store.ts'
import type { ClusterNode, LeaderRow, NextIds } from '../../handoff/stored.ts'
import { BEGIN_WRITING, type Statement } from './session/connection.ts'
import type { Channel, Channels } from './session/connector.ts'
import { foundNoRow } from './session/errors.ts'

/** The database's time in milliseconds, in SQL. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** In SQL: what `NextIds` has. */
export const NEXT_IDS =
  "json_build_object('task', next_task, 'lane', next_lane, 'partition', next_partition, 'event', next_event)"

interface TakenOver extends OpenedSharedDisk {
  /** How often rows were written. */
  readonly writes: number
}

// The columns of these two are the fields of `LeaderRow` and of `TakenOver`.

const readLeaderRowStatement: Statement = {
  text: `SELECT term, cluster_id AS "clusterId", secret, ${NOW} AS now,
    CASE WHEN leader_id IS NOT NULL AND leader_url IS NOT NULL
      THEN json_build_object('nodeId', leader_id, 'url', leader_url) END AS leader,
    coalesce((SELECT number FROM baton.entry ORDER BY number DESC LIMIT 1), 0) AS last FROM baton.head`,
}

const readOpenedStatement: Statement = {
  text: `SELECT f.writes, ${NEXT_IDS} AS "nextIds", ${NOW} AS now,
      (SELECT max(number) FROM baton.entry) AS last,
      ARRAY(SELECT body FROM baton.entry WHERE number > f.number AND body IS NOT NULL ORDER BY number) AS unflushed
    FROM baton.flushed f`,
}

/**
 * Starts each transaction that only the leader may commit. It fails if another node has taken over, and a
 * take-over waits until the transaction ends. Dividing by the number of rows found aborts the transaction,
 * whose statements are all sent together.
 */
export const fence = (term: string): Statement => ({
  text: `SELECT 1 / count(*) FROM (SELECT FROM baton.head WHERE term = $1::text COLLATE "C" FOR SHARE) AS mine`,
  values: [term],
})

/** A standby that was promoted without the last commits has the term, but may lack the entry. */
const entryFence = (term: string, number: number): Statement => ({
  text: `SELECT 1 / count(*) FROM baton.entry WHERE number = $1 AND term = $2::text COLLATE "C"`,
  values: [number, term],
})

export interface RowsWritten {
  readonly term: string
  /** The last entry that this node has appended. */
  readonly last: number
  /** How often rows were written before. */
  readonly writes: number
  /** Of a flush: the last entry of which the rows are written. */
  readonly upTo?: number
  readonly nextIds?: NextIds | null
}

/**
 * Start each transaction that writes rows. It fails unless the database has all that this node wrote before:
 * a standby that was promoted without the last commits has the term, but may lack an entry, or rows.
 */
export const rowFences = ({ term, last, writes, upTo, nextIds }: RowsWritten): Statement[] => [
  fence(term),
  entryFence(term, last),
  {
    text: `WITH counted AS (
        UPDATE baton.flushed SET writes = writes + 1, number = greatest(number, $2::bigint),
          next_task = coalesce($3, next_task), next_lane = coalesce($4, next_lane),
          next_partition = coalesce($5, next_partition), next_event = coalesce($6, next_event)
        WHERE writes = $1 RETURNING 1)
      SELECT 1 / count(*) FROM counted`,
    values: [
      writes,
      upTo ?? null,
      nextIds?.task ?? null,
      nextIds?.lane ?? null,
      nextIds?.partition ?? null,
      nextIds?.event ?? null,
    ],
  },
]

export async function readLeaderRow(channel: Channel): Promise<LeaderRow> {
  const [row] = await channel.useWithRetry((connection) => connection.run(readLeaderRowStatement))
  if (row === undefined) throw new StoreUnavailable('store_unavailable', 'baton.head has lost its only row')
  return row as unknown as LeaderRow
}

/** Removes the leader from the row, so that other nodes need not detect that this one is gone. */
export const resignStatement = (term: string): Statement => ({
  text: `UPDATE baton.head SET leader_id = NULL, leader_url = NULL WHERE term = $1::text COLLATE "C"`,
  values: [term],
})

/** A try, with the current term, fails if another node took over or appended at the same moment. */
const TRIES = 20
/** A transaction that is idle, waiting for its client, delays a take-over for this long. */
const PATIENCE_MILLIS = 1000

/**
 * Makes this node the leader. Later writes of previous leaders are refused, including this node's own from an
 * earlier term. With `from`, it takes over only from the leader of that term, and fails if another node was
 * faster.
 */
export async function takeOver(
  { flush, general }: Channels,
  node: ClusterNode,
  log: Log | undefined,
  from: string | null | undefined,
): Promise<TakenOver> {
  for (let tried = 1; ; tried += 1) {
    const { term: seen } = await readLeaderRow(flush)
    if (from !== undefined && seen !== from) throw new NotLeader()
    const term = randomUUID()
    const over = new AbortController()
    void terminateBlockers(general, term, over.signal, log)
    try {
      const statements = takeOverStatements(term, seen, node)
      const [, , [opened] = []] = await flush.use((connection) =>
        connection.transact(BEGIN_WRITING, statements),
      )
      if (opened === undefined)
        throw new StoreUnavailable('store_unavailable', 'baton.flushed has lost its only row')
      return { ...(opened as unknown as Omit<TakenOver, 'term'>), term }
    } catch (error) {
      if (!foundNoRow(error) || tried === TRIES) throw error
    } finally {
      over.abort()
    }
  }
}

const markOf = (term: string): string => `/* taking over: ${term} */`

function takeOverStatements(term: string, seen: string | null, node: ClusterNode): Statement[] {
  return [
    {
      text: `${markOf(term)} WITH taken AS (
          UPDATE baton.head SET term = $1::text, leader_id = $3::text, leader_url = $4::text
          WHERE term IS NOT DISTINCT FROM $2::text RETURNING 1)
        SELECT 1 / count(*) FROM taken`,
      values: [term, seen, node.nodeId, node.url === '' ? null : node.url],
    },
    // Waits for the last append of the previous leader, and fails if that took the number.
    {
      text: `WITH appended AS (
          INSERT INTO baton.entry (number, term, body)
          SELECT coalesce((SELECT number FROM baton.entry ORDER BY number DESC LIMIT 1), 0) + 1, $1::text, NULL
          ON CONFLICT DO NOTHING RETURNING 1)
        SELECT 1 / count(*) FROM appended`,
      values: [term],
    },
    readOpenedStatement,
  ]
}

/**
 * A transaction of the previous leader locks the leader row until it ends. If its client is frozen or
 * disconnected, the transaction stays idle, so its session is terminated here; a running transaction ends by
 * itself. A role may terminate its own sessions.
 */
async function terminateBlockers(
  others: Channel,
  term: string,
  signal: AbortSignal,
  log: Log | undefined,
): Promise<void> {
  const text = `SELECT idle.pid, pg_terminate_backend(idle.pid) AS ended
    FROM pg_stat_activity AS waiting CROSS JOIN LATERAL unnest(pg_blocking_pids(waiting.pid)) AS blocking (pid)
    JOIN pg_stat_activity AS idle ON idle.pid = blocking.pid AND idle.state LIKE 'idle in transaction%'
    WHERE waiting.wait_event_type = 'Lock' AND waiting.pid <> pg_backend_pid() AND starts_with(waiting.query, $1)`
  const isOver = () => signal.aborted
  while (!isOver()) {
    await sleep(PATIENCE_MILLIS, undefined, { signal, ref: false }).catch(() => {})
    if (isOver()) return
    const found = await others.run({ text, values: [markOf(term)] }).catch((error: unknown) => {
      log?.warn(
        { err: error },
        'could not terminate a database session that blocks the take-over by this node',
      )
      return []
    })
    for (const { pid, ended } of found)
      log?.warn({ pid, ended }, 'terminated a database session that blocked the take-over by this node')
  }
}

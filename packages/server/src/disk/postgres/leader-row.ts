import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenedSharedDisk } from '../../handoff/disk.ts'
import type { Log } from '../../handoff/log.ts'
import { NotLeader, StoreUnavailable } from '../../handoff/store.ts'
import type { ClusterNode, LeaderRow, NextIds } from '../../handoff/stored.ts'
import { BEGIN_WRITING, type Row, type Statement } from './session/connection.ts'
import type { Channel } from './session/connector.ts'
import { foundNoRow } from './session/errors.ts'

/** The database's time in milliseconds, in SQL. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

interface TakenOver extends OpenedSharedDisk {
  /** How often rows were written. */
  readonly writes: number
}

const readLeaderRowStatement: Statement = {
  text: `SELECT term, leader_id, leader_url, cluster_id, secret, ${NOW} AS now,
    coalesce((SELECT number FROM baton.entry ORDER BY number DESC LIMIT 1), 0) AS last FROM baton.head`,
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
  const nodeId = row['leader_id'] as string | null
  const url = row['leader_url'] as string | null
  return {
    term: row['term'] as string | null,
    leader: nodeId === null || url === null ? null : { nodeId, url },
    clusterId: row['cluster_id'] as string,
    secret: row['secret'] as string,
    now: row['now'] as number,
    last: row['last'] as number,
  }
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
  channel: Channel,
  others: Channel,
  node: ClusterNode,
  log?: Log,
  from?: string | null,
): Promise<TakenOver> {
  for (let tried = 1; ; tried += 1) {
    const { term: seen } = await readLeaderRow(channel)
    if (from !== undefined && seen !== from) throw new NotLeader()
    try {
      return await tryToTakeOver(channel, others, node, seen, log)
    } catch (error) {
      if (!foundNoRow(error) || tried === TRIES) throw error
    }
  }
}

async function tryToTakeOver(
  channel: Channel,
  others: Channel,
  node: ClusterNode,
  seen: string | null,
  log: Log | undefined,
): Promise<TakenOver> {
  const term = randomUUID()
  const over = new AbortController()
  void terminateBlockers(others, term, over.signal, log)
  try {
    const [, , state] = await channel.use((connection) =>
      connection.transact(BEGIN_WRITING, takeOverStatements(term, seen, node)),
    )
    return opened(term, state?.[0])
  } finally {
    over.abort()
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
    {
      text: `SELECT f.writes, f.next_task, f.next_lane, f.next_partition, f.next_event, ${NOW} AS now,
          (SELECT max(number) FROM baton.entry) AS last,
          ARRAY(SELECT body FROM baton.entry WHERE number > f.number AND body IS NOT NULL ORDER BY number) AS unflushed
        FROM baton.flushed f`,
    },
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

function opened(term: string, state: Row | undefined): TakenOver {
  if (state === undefined)
    throw new StoreUnavailable('store_unavailable', 'baton.flushed has lost its only row')
  return {
    term,
    writes: state['writes'] as number,
    now: state['now'] as number,
    last: state['last'] as number,
    unflushed: state['unflushed'] as string[],
    nextIds: {
      task: state['next_task'] as number,
      lane: state['next_lane'] as number,
      partition: state['next_partition'] as number,
      event: state['next_event'] as number,
    },
  }
}

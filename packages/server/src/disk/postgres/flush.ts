import type { Images } from '../../handoff/disk.ts'
import type { PartitionStatus } from '../../handoff/partition.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/views/eta.ts'
import {
  type Columns,
  inChunks,
  keyColumns,
  laneColumns,
  laneTableColumns,
  levelColumns,
  paceColumns,
  plainArray,
  statusColumns,
  tableSettingsColumns,
  taskColumns,
  textArray,
} from './columns.ts'
import { addTotalsStatement } from './instance-rows.ts'
import { outboxStatements } from './outbox-rows.ts'
import type { Statement } from './session/connection.ts'
import { addThroughputStatement } from './throughput-rows.ts'

/** Entries are kept for a while after they are flushed, because an append checks the previous entry. */
const ENTRIES_KEPT = 1000

/**
 * Old seconds are deleted now and then: a search in each flush would cost more than keeping a few of them.
 */
const FORGET_PACE_EVERY = 20

interface FlushRequest {
  readonly leaderTerm: string
  /** The last entry of the previous flush. */
  readonly from: number
  readonly upTo: number
  /** The entry of the take-over. All earlier entries were read at the take-over. */
  readonly takenOverAt: number
  /** Entries up to this one have been deleted. */
  readonly deletedTo: number
  readonly images: Images
}

/** The last entry that a flush up to `upTo` deletes. Never the newest. */
export const deletableTo = (upTo: number): number => Math.max(0, upTo - ENTRIES_KEPT)

/** All statements of the transaction after its fence, sent together. */
export function flushStatements(request: FlushRequest): Statement[] {
  const { images } = request
  return [
    moveStatement(request),
    ...upserts('task', 'id', taskColumns, images.tasks.values()),
    ...upserts('lane', 'id', laneColumns, images.lanes.values()),
    ...upserts('level', 'level', levelColumns, images.levels.values()),
    ...upserts('lane_table', 'lane, name', laneTableColumns, images.laneTables.values()),
    ...partitionStatements(images.partitions),
    ...keyStatements(images.keys),
    ...tableSettingsStatements(images.tableSettings),
    ...paceStatements(images.pace),
    ...rangesStatement(images.ranges),
    ...tableStatements(images.tables),
    ...producedStatements(images.produced),
    ...instanceStatements(images.instances),
    ...outboxStatements(images.outbox),
    ...totalsStatements(images.totals),
    ...throughputStatements(images.throughput),
    {
      text: 'DELETE FROM baton.entry WHERE number > $1 AND number <= $2',
      values: [request.deletedTo, deletableTo(request.upTo)],
    },
  ]
}

/**
 * Fails if the flushed position is not what this node wrote last, or if this server does not have the entry.
 * The latter happens when it was promoted without the entry while another server still accepts appends.
 */
function moveStatement({
  leaderTerm,
  from,
  upTo,
  takenOverAt,
  images: { nextIds },
}: FlushRequest): Statement {
  return {
    text: `WITH moved AS (
        UPDATE baton.flushed SET number = greatest(number, $2::bigint), next_task = coalesce($4, next_task),
          next_lane = coalesce($5, next_lane), next_partition = coalesce($6, next_partition),
          next_event = coalesce($8, next_event)
        WHERE number = $1 AND EXISTS (SELECT FROM baton.entry e WHERE e.number = greatest($2, $7::bigint) AND e.term = $3::text COLLATE "C")
        RETURNING 1)
      SELECT 1 / count(*) FROM moved`,
    values: [
      from,
      upTo,
      leaderTerm,
      nextIds?.task ?? null,
      nextIds?.lane ?? null,
      nextIds?.partition ?? null,
      takenOverAt,
      nextIds?.event ?? null,
    ],
  }
}

function* upserts<Stored extends object>(
  table: string,
  key: string,
  columns: Columns<Stored>,
  rows: Iterable<Stored>,
): Iterable<Statement> {
  const names = columns.names
  const text = `INSERT INTO baton.${table} (${names.join(', ')}) SELECT * FROM ${columns.unnest('n')}
    ON CONFLICT (${key}) DO UPDATE SET ${columns.changes(table, key)}`
  for (const chunk of inChunks(rows)) yield { text, values: columns.arrays(chunk) }
}

const UPDATE_PARTITIONS = `UPDATE baton.partition p
  SET ${statusColumns.names.map((name) => `${name} = n.${name}`).join(', ')}
  FROM unnest($1::bigint[], ${statusColumns.arrayParameters(2)}) AS n (id, ${statusColumns.names.join(', ')})
  WHERE p.id = n.id`

function* partitionStatements(images: Images['partitions']): Iterable<Statement> {
  const changed: [number, PartitionStatus][] = []
  const removed: number[] = []
  for (const [id, status] of images)
    if (status === null) removed.push(id)
    else changed.push([id, status])
  // Rows with neighbouring ids are on the same pages.
  changed.sort(([a], [b]) => a - b)
  for (const chunk of inChunks(changed)) {
    const ids = plainArray(chunk.map(([id]) => id))
    yield {
      text: UPDATE_PARTITIONS,
      values: [ids, ...statusColumns.arrays(chunk.map(([, status]) => status))],
    }
  }
  if (removed.length > 0)
    yield { text: 'DELETE FROM baton.partition WHERE id = ANY ($1::bigint[])', values: [plainArray(removed)] }
}

function* keyStatements(images: Images['keys']): Iterable<Statement> {
  const forgotten = [...images].flatMap(([key, stored]) => (stored === null ? [key] : []))
  if (forgotten.length > 0)
    yield { text: 'DELETE FROM baton.pull_key WHERE key = ANY ($1::text[])', values: [textArray(forgotten)] }
  yield* upserts(
    'pull_key',
    'key',
    keyColumns,
    [...images.values()].filter((stored) => stored !== null),
  )
}

function* tableSettingsStatements(images: Images['tableSettings']): Iterable<Statement> {
  const unset = [...images].flatMap(([table, row]) => (row === null ? [table] : []))
  if (unset.length > 0)
    yield {
      text: 'DELETE FROM baton.table_settings WHERE name = ANY ($1::text[])',
      values: [textArray(unset)],
    }
  const set = [...images.values()].filter((row) => row !== null)
  yield* upserts('table_settings', 'name', tableSettingsColumns, set)
}

const FORGET_PACE = `DELETE FROM baton.pace p USING unnest($1::bigint[]) AS n (task)
  WHERE p.task = n.task AND p.second < (
    SELECT second FROM baton.pace WHERE task = n.task ORDER BY second DESC OFFSET ${PACE_SECONDS_KEPT - 1} LIMIT 1)`

function* paceStatements(images: Images['pace']): Iterable<Statement> {
  const over = [...images].flatMap(([task, stored]) => (stored === null ? [Number(task)] : []))
  const seconds = [...images.values()].filter((stored) => stored !== null)
  if (over.length > 0)
    yield { text: 'DELETE FROM baton.pace WHERE task = ANY ($1::bigint[])', values: [plainArray(over)] }
  yield* upserts('pace', 'task, second', paceColumns, seconds)
  const old = seconds.filter(({ second }) => second % FORGET_PACE_EVERY === 0).map(({ task }) => task)
  if (old.length > 0) yield { text: FORGET_PACE, values: [plainArray([...new Set(old)])] }
}

function* tableStatements(images: Images['tables']): Iterable<Statement> {
  const tables = [...images].flatMap(([task, names]) => [...names].map((name) => ({ task, name })))
  for (const chunk of inChunks(tables)) {
    yield {
      text: `INSERT INTO baton.task_compute_table (task, name)
        SELECT task, name FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS n (task, name, at) ORDER BY at
        ON CONFLICT DO NOTHING`,
      values: [plainArray(chunk.map(({ task }) => task)), textArray(chunk.map(({ name }) => name))],
    }
  }
}

function* producedStatements(images: Images['produced']): Iterable<Statement> {
  for (const chunk of inChunks(images.values())) {
    yield {
      text: `INSERT INTO baton.produced_task (instance, task, last_call_back_at)
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[])
        ON CONFLICT (instance, task) DO UPDATE SET last_call_back_at = excluded.last_call_back_at`,
      values: [
        textArray(chunk.map(({ instance }) => instance)),
        plainArray(chunk.map(({ task }) => task)),
        plainArray(chunk.map(({ at }) => at)),
      ],
    }
  }
}

/** In order of name, as heartbeats are written, so that concurrent transactions do not deadlock. */
function* instanceStatements(images: Images['instances']): Iterable<Statement> {
  const seen = [...images.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1))
  for (const chunk of inChunks(seen)) {
    yield {
      text: `INSERT INTO baton.instance (instance_id, role, first_seen_at, last_seen_at)
        SELECT instance_id, role, at, at FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n (instance_id, role, at)
        ORDER BY instance_id COLLATE "C" ON CONFLICT DO NOTHING`,
      values: [
        textArray(chunk.map(({ instanceId }) => instanceId)),
        textArray(chunk.map(({ role }) => role)),
        plainArray(chunk.map(({ at }) => at)),
      ],
    }
  }
}

/** In order of name, for the same reason. */
function* totalsStatements(images: Images['totals']): Iterable<Statement> {
  const added = [...images.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1))
  for (const chunk of inChunks(added)) yield addTotalsStatement(chunk)
}

function* throughputStatements(images: Images['throughput']): Iterable<Statement> {
  for (const chunk of inChunks(images.values())) yield addThroughputStatement(chunk)
}

/**
 * Adds ranges that were called back to the stored ranges, and merges overlapping and adjacent ones. Stored
 * ranges of a lane have gaps between them. An added range can therefore only meet ranges that start within it
 * and the one before it.
 *
 * A row is either removed or written, never both: the order of the two within one statement is undefined.
 */
const ADD = `
WITH added AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n (lane, first, last)
), met AS MATERIALIZED (
  SELECT DISTINCT a.lane, r.first, r.last FROM added a CROSS JOIN LATERAL (
    (SELECT first, last FROM baton.lane_range
     WHERE lane = a.lane AND first < a.first ORDER BY first DESC LIMIT 1)
    UNION ALL
    SELECT first, last FROM baton.lane_range WHERE lane = a.lane AND first BETWEEN a.first AND a.last + 1
  ) r WHERE r.last >= a.first - 1
), every AS (
  SELECT lane, first, last,
    first > 1 + max(last) OVER (PARTITION BY lane ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_apart
  FROM (SELECT * FROM added UNION ALL SELECT * FROM met) u
), islands AS (
  SELECT lane, first, last, count(*) FILTER (WHERE is_apart) OVER (PARTITION BY lane ORDER BY first, last) AS island FROM every
), united AS MATERIALIZED (
  SELECT lane, min(first) AS first, max(last) AS last FROM islands GROUP BY lane, island
), removed AS (
  DELETE FROM baton.lane_range r USING met m WHERE r.lane = m.lane AND r.first = m.first
    AND NOT EXISTS (SELECT FROM united u WHERE u.lane = m.lane AND u.first = m.first)
)
INSERT INTO baton.lane_range (lane, first, last) SELECT lane, first, last FROM united
ON CONFLICT (lane, first) DO UPDATE SET last = excluded.last`

/**
 * Merges adjacent ranges before they are sent, since a task that is called back in many arrays adds many of
 * them.
 */
function* rangesStatement(ranges: Images['ranges']): Iterable<Statement> {
  const sorted = ranges.toSorted((a, b) => a.lane - b.lane || a.first - b.first)
  const united: { lane: number; first: number; last: number }[] = []
  for (const { lane, first, last } of sorted) {
    const before = united.at(-1)
    if (before !== undefined && before.lane === lane && first <= before.last + 1)
      before.last = Math.max(before.last, last)
    else united.push({ lane, first, last })
  }
  for (const chunk of inChunks(united))
    yield {
      text: ADD,
      values: [
        plainArray(chunk.map(({ lane }) => lane)),
        plainArray(chunk.map(({ first }) => first)),
        plainArray(chunk.map(({ last }) => last)),
      ],
    }
}

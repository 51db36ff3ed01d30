import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { schema } from './schema.ts'

/**
 * Migrates version 6 to the current version. Only unreleased programs, before 0.1.0, wrote version 6. It kept
 * windows of ranked partitions, held the others back, and went through all rows of a cancelled task. Since
 * version 7 there are lines with a cursor, and lanes have tags.
 */
export function migrateFrom6(db: DatabaseSync): void {
  foldJournal(db)
  // Indexes keep their names when their tables are renamed, so they are dropped.
  const indexes = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`).all()
  for (const { name } of indexes) db.exec(`DROP INDEX ${name}`)
  for (const table of oldTables) db.exec(`ALTER TABLE ${table} RENAME TO old_${table}`)
  db.exec(schema)
  for (const copy of copies) db.exec(copy)
  for (const table of oldTables) db.exec(`DROP TABLE old_${table}`)
}

const oldTables = [
  'journal',
  'purging',
  'task_step',
  'probe',
  'pace',
  'produced_task',
  'instance',
  'pull_key',
  'partition',
  'task_compute_table',
  'compute_table',
  'level',
  'lane_range',
  'lane',
  'task',
]

/** The states of version 6. */
const states = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled']

/**
 * A waiting partition after the last one of its lane that was ever leased is untouched. An earlier one was
 * released, was passed over, or waits for another attempt, perhaps ordered by an operator. A leased or
 * delayed partition still has its rank if it was to be released without an attempt.
 */
const copyPartitions = `
WITH cursor AS (SELECT lane, max(iif(term > 0, id, 0)) AS id FROM old_partition GROUP BY lane)
INSERT INTO partition (id, lane, idx, record_count, compute_table, spelling, called_back_at, state, line, term, attempts,
  releases, holder, secret, outcome, due_at, leased_at, settled_at, reported_records, reason)
SELECT p.id, p.lane, p.idx, p.record_count, compute_table.name, p.spelling, p.called_back_at,
  CASE
    WHEN p.state IN ('ready', 'held', 'parked') AND task.cancelled THEN 'cancelled'
    WHEN p.state = 'held' THEN 'ready'
    ELSE p.state
  END,
  CASE
    WHEN p.state IN ('leased', 'delayed') THEN iif(p.rank IS NULL, 'retry', 'released')
    WHEN p.state NOT IN ('ready', 'held') OR task.cancelled OR p.id > cursor.id THEN 'fresh'
    WHEN p.term = 0 OR p.fresh = 0 AND p.outcome = 'released' THEN 'released'
    ELSE 'retry'
  END,
  p.term, p.attempts, p.releases, instance.instance_id, p.secret, p.outcome, p.due_at, p.leased_at, p.settled_at,
  p.reported_records, p.reason
FROM old_partition p
  JOIN cursor ON cursor.lane = p.lane
  JOIN old_lane lane ON lane.id = p.lane
  JOIN old_task task ON task.id = lane.task
  JOIN old_compute_table compute_table ON compute_table.id = p.compute_table
  LEFT JOIN old_instance instance ON instance.id = p.holder
ORDER BY p.id`

const countRows = states
  .flatMap((state) => [
    `count(*) FILTER (WHERE p.state = '${state}') AS ${state}_partitions`,
    `ifnull(sum(p.record_count) FILTER (WHERE p.state = '${state}'), 0) AS ${state}_records`,
    `count(*) FILTER (WHERE old.state = '${state}') AS old_${state}_partitions`,
    `ifnull(sum(old.record_count) FILTER (WHERE old.state = '${state}'), 0) AS old_${state}_records`,
  ])
  .join(', ')

/** Counted from rows. Purged partitions are only in the old counters. */
const lanesCounters = states
  .flatMap((state) => [`${state}_partitions`, `${state}_records`])
  .map((column) => {
    const counted = `ifnull(counted.${column}, 0)`
    return `iif(lane.purged = 0, ${counted}, lane.${column} + ${counted} - ifnull(counted.old_${column}, 0))`
  })
  .join(', ')
const counterColumns = states.flatMap((state) => [`${state}_partitions`, `${state}_records`]).join(', ')

const NEVER = '9223372036854775807'

/**
 * A lane continues at the rank of its first waiting partition, or, if none waits, at the rank that would have
 * come next.
 */
const copyLanes = `
WITH
  counted AS (
    SELECT p.lane, max(p.id) AS tail, max(iif(old.term > 0, old.id, 0)) AS cursor,
      count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'fresh') AS fresh,
      count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'released') AS released,
      count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'retry') AS retries,
      min(old.rank) FILTER (WHERE p.state = 'ready' AND p.line = 'fresh') AS first_rank,
      min(old.rank) FILTER (WHERE p.state = 'ready' AND p.line = 'retry' AND old.fresh = 0) AS first_retry_rank,
      ${countRows}
    FROM partition p JOIN old_partition old ON old.id = p.id GROUP BY p.lane
  ),
  tagged AS (
    SELECT lane.id,
      ifnull(counted.first_rank, max(lane.finish, ifnull(level.virtual, 0))) AS tag,
      ifnull(counted.first_retry_rank, max(lane.retry_finish, ifnull(level.virtual, 0))) AS retry_tag
    FROM old_lane lane LEFT JOIN counted ON counted.lane = lane.id LEFT JOIN old_level level ON level.level = lane.level
  )
INSERT INTO lane (id, task, level, tag, retry_tag, cursor, tail, released, retries, turn, parked_skipped, purged,
  purged_records, ${counterColumns})
SELECT lane.id, lane.task, lane.level, tag, retry_tag, ifnull(cursor, 0), ifnull(tail, 0), ifnull(released, 0),
  ifnull(retries, 0),
  nullif(min(iif(fresh + released > 0, tag, ${NEVER}), iif(retries > 0, retry_tag, ${NEVER})), ${NEVER}),
  lane.parked_skipped, lane.purged, lane.purged_records, ${lanesCounters}
FROM old_lane lane JOIN tagged ON tagged.id = lane.id LEFT JOIN counted ON counted.lane = lane.id`

/** If a lane has one table, the table's counts are those of the lane. The orders of tables start equal. */
const copyLaneTables = `
INSERT INTO lane_table (lane, name, level, tag, retry_tag, turn, cursor, ready, released, retries)
SELECT p.lane, p.compute_table, lane.level, 0, 0, iif(count(*) FILTER (WHERE p.state = 'ready') > 0, 0, NULL),
  max(iif(p.term > 0, p.id, 0)), count(*) FILTER (WHERE p.state = 'ready'),
  count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'released'),
  count(*) FILTER (WHERE p.state = 'ready' AND p.line = 'retry')
FROM partition p JOIN lane ON lane.id = p.lane GROUP BY p.lane, p.compute_table`

const taskColumns = `id, task_id, state, paused, cancelled, sealed, expected_partitions, level_barrier, open_level,
  generation, first_call_back_at, last_call_back_at, finished_at, purged_at, delivered, attempts_wasted,
  reported_declared, reported_records, mismatched`

const sumOfLanes = states
  .flatMap((state) => [`${state}_partitions`, `${state}_records`])
  .map((column) => `(SELECT ifnull(sum(${column}), 0) FROM lane WHERE lane.task = task.id)`)
  .join(', ')

const copyTasks = `
INSERT INTO task (${taskColumns}, reruns, ${counterColumns})
SELECT ${taskColumns},
  (
    SELECT nullif(json_group_array(
      json_object('only', nullif(only_level, -1), 'begunAt', begun_at, 'level', level, 'index', idx)
    ), '[]')
    FROM old_task_step WHERE old_task_step.task = task.id AND step = 'rerun'
  ),
  ${sumOfLanes}
FROM old_task task ORDER BY id`

const instanceColumns = `instance_id, role, first_seen_at, last_seen_at, version, started_at, draining, pulls, partitions,
  records, done, failed, released, call_backs, called_back`

const copies = [
  copyPartitions,
  copyLanes,
  copyLaneTables,
  copyTasks,
  'INSERT INTO purging (task) SELECT task FROM old_purging',
  'INSERT INTO lane_range (lane, first, last) SELECT lane, first, last FROM old_lane_range',
  'INSERT INTO level (level, virtual, served) SELECT level, virtual, served FROM old_level',
  `INSERT INTO task_table (task, name)
   SELECT task, name FROM old_task_compute_table JOIN old_compute_table compute_table ON compute_table.id = compute_table
   ORDER BY task, compute_table.id`,
  'INSERT INTO pull_key (key, leases, forget_at) SELECT key, leases, forget_at FROM old_pull_key',
  `INSERT INTO instance (${instanceColumns}) SELECT ${instanceColumns} FROM old_instance`,
  `INSERT INTO produced_task (instance, task, last_call_back_at)
   SELECT instance_id, task, last_call_back_at FROM old_produced_task JOIN old_instance ON old_instance.id = instance`,
  'INSERT INTO pace (task, second, partitions, records) SELECT task, second, partitions, records FROM old_pace',
  `UPDATE head SET
     next_task = (SELECT ifnull(max(id), 0) + 1 FROM task),
     next_lane = (SELECT ifnull(max(id), 0) + 1 FROM lane),
     next_partition = (SELECT ifnull(max(id), 0) + 1 FROM partition)`,
]

// Writes the journal of schema version 6 to its rows. This code no longer changes.

type Values = readonly SQLInputValue[]

/** Rows as parameters of the statements below. Older entries have fewer lists. */
interface JournalEntry {
  readonly admits?: readonly Values[]
  readonly leases?: readonly Values[]
  readonly finishes?: readonly Values[]
  readonly levels?: readonly Values[]
  readonly moves?: readonly Values[]
  readonly lanes?: readonly Values[]
  readonly tasks?: readonly Values[]
  readonly paces?: readonly Values[]
  readonly keys?: readonly (readonly [key: string, leases: readonly string[], forgetAt: number])[]
}

const counters = states.flatMap((state) => [`${state}_partitions`, `${state}_records`])

const NUMBER_LENGTH = 15
const CONTINUED = '+'

function foldJournal(db: DatabaseSync): void {
  const sql = prepare(db)
  for (const entry of readJournal(db)) {
    for (const row of entry.admits ?? []) sql.admit.run(...row)
    for (const row of entry.leases ?? []) sql.lease.run(...row)
    for (const row of entry.finishes ?? []) sql.finish.run(...row)
    for (const row of entry.moves ?? []) sql.move.run(...row)
    for (const row of entry.levels ?? []) sql.level.run(...row)
    for (const row of entry.lanes ?? []) sql.lane.run(...row)
    for (const row of entry.tasks ?? []) sql.task.run(...row)
    for (const row of entry.paces ?? []) sql.pace.run(...row)
    for (const [key, leases, forgetAt] of entry.keys ?? []) sql.key.run(key, JSON.stringify(leases), forgetAt)
  }
}

/**
 * Each slot starts with its number. The numbers of valid slots are consecutive; slots after a break are left
 * over from earlier.
 */
function readJournal(db: DatabaseSync): JournalEntry[] {
  const entries: JournalEntry[] = []
  let text = ''
  let last: number | undefined
  for (const { entry } of db.prepare('SELECT entry FROM journal ORDER BY slot').iterate()) {
    const slot = entry as string
    const number = Number(slot.slice(0, NUMBER_LENGTH))
    if (last !== undefined && number !== last + 1) break
    last = number
    text += slot.slice(NUMBER_LENGTH + 1)
    if (slot[NUMBER_LENGTH] === CONTINUED) continue
    if (text.trimEnd() !== '') entries.push(JSON.parse(text) as JournalEntry)
    text = ''
  }
  return entries
}

function prepare(db: DatabaseSync) {
  const assignCounters = counters.map((column) => `${column} = ?`).join(', ')
  const addToCounters = counters.map((column) => `${column} = ${column} + ?`).join(', ')
  return {
    admit: db.prepare(`UPDATE partition SET state = 'ready', fresh = 1, rank = ? WHERE id = ?`),
    lease: db.prepare(
      `UPDATE partition SET state = 'leased', outcome = NULL, fresh = 0, term = ?, secret = ?, holder = ?, due_at = ?,
         leased_at = ? WHERE id = ?`,
    ),
    finish: db.prepare(
      `UPDATE partition SET state = 'done', due_at = NULL, outcome = ?, attempts = ?, settled_at = ?,
         reported_records = ? WHERE id = ?`,
    ),
    move: db.prepare(`UPDATE lane SET finish = ?, retry_finish = ?, ${addToCounters} WHERE id = ?`),
    level: db.prepare(
      `INSERT INTO level (level, virtual, served) VALUES (?, ?, ?)
       ON CONFLICT (level) DO UPDATE SET virtual = excluded.virtual, served = excluded.served`,
    ),
    lane: db.prepare(
      `UPDATE lane SET finish = ?, retry_finish = ?, parked_skipped = ?, purged = ?, purged_records = ?,
         ${assignCounters} WHERE id = ?`,
    ),
    task: db.prepare(
      `UPDATE task SET state = ?, paused = ?, cancelled = ?, sealed = ?, expected_partitions = ?, level_barrier = ?,
         open_level = ?, generation = ?, last_call_back_at = ?, finished_at = ?, purged_at = ?, delivered = ?,
         attempts_wasted = ?, reported_declared = ?, reported_records = ?, mismatched = ?, ${assignCounters}
       WHERE id = ?`,
    ),
    pace: db.prepare(
      `INSERT INTO pace (task, second, partitions, records) VALUES (?, ?, ?, ?)
       ON CONFLICT (task, second) DO UPDATE SET partitions = partitions + excluded.partitions,
         records = min(records + excluded.records, ${Number.MAX_SAFE_INTEGER})`,
    ),
    key: db.prepare('INSERT INTO pull_key (key, leases, forget_at) VALUES (?, ?, ?)'),
  }
}

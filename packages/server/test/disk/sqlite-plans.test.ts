import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import { rows } from './conformance/builders.ts'
import { everyRead } from './every-read.ts'

/** How each statement finds its rows. A statement is identified by a unique piece of its text. */
const ways: readonly [what: string, piece: RegExp, way: string][] = [
  ['a task by its name', /^SELECT (?!.*\(SELECT).* FROM task WHERE task_id = /, 'task_by_name (task_id=?)'],
  ['a lane by its level', /FROM lane WHERE task = \? AND level = /, 'lane_identity (task=? AND level=?)'],
  [
    'a partition by its index',
    /spelling.* FROM partition WHERE lane = \? AND idx = \?$/,
    'partition_identity (lane=? AND idx=?)',
  ],
  ['the lanes of a task, to add them up', /^SELECT sum\(max\(0, done_partitions/, 'lane_identity (task=?)'],
  [
    'lanes with parked partitions',
    /level >= \? AND parked_partitions > 0/,
    'lane_with_parked (task=? AND level>?)',
  ],
  ['lanes with rows', /level >= \? AND .* - purged > 0 ORDER/, 'lane_with_rows (task=? AND level>?)'],
  [
    'partitions of a table that arrived in a lane',
    /in_mixed_lane = 1 AND compute_table = \? AND lane = \? AND id > /,
    'partition_of_table (lane=? AND compute_table=? AND rowid>? AND rowid<?)',
  ],
  [
    'partitions that arrived in a lane',
    /WHERE lane = \? AND id > \? AND id <= \? AND state = 'ready' AND due_at IS NULL ORDER/,
    'partition_arrival (lane=? AND rowid>? AND rowid<?)',
  ],
  [
    'partitions that came back at a time',
    /'ready' AND due_at IS NOT NULL AND lane = \? AND due_at = \?/,
    'partition_returned (lane=? AND due_at=? AND rowid>?)',
  ],
  [
    'partitions that came back later',
    /'ready' AND due_at IS NOT NULL AND lane = \? AND due_at > \?/,
    'partition_returned (lane=? AND due_at>?)',
  ],
  [
    'partitions of a table that came back at a time',
    /AND compute_table = \? AND due_at = \?/,
    'partition_returned (lane=? AND due_at=? AND rowid>?)',
  ],
  [
    'partitions of a table that came back later',
    /AND compute_table = \? AND due_at > \?/,
    'partition_returned (lane=? AND due_at>?)',
  ],
  ['open tasks', /FROM task WHERE \(finished_at IS NULL OR/, 'task_open (id>?)'],
  ['open lanes', /FROM lane WHERE ready_partitions/, 'lane_open (id>?)'],
  [
    'rows of a lane',
    /WHERE true AND lane = \? AND idx > \? AND idx <= \? AND id \+ 0 <= \? ORDER BY/,
    'partition_identity (lane=? AND idx>? AND idx<?)',
  ],
  [
    'rows of a lane that failed',
    /INDEXED BY partition_failed .* id \+ 0 <= \? ORDER BY/,
    'partition_failed (lane=? AND failure=? AND idx>? AND idx<?)',
  ],
  [
    'rows of a lane parked as',
    /INDEXED BY partition_parked_as/,
    'partition_parked_as (lane=? AND failure=? AND idx>? AND idx<?)',
  ],
  [
    'parked rows of a lane',
    /WHERE state = 'parked' AND lane = \? AND idx > \? /,
    'partition_parked (lane=? AND idx>? AND idx<?)',
  ],
  [
    'begun rows of a lane',
    /OR state = 'parked'\) AND lane = \? AND idx > \? /,
    'partition_begun (lane=? AND idx>? AND idx<?)',
  ],
  ['leases that end at a time', /'leased' AND due_at = /, 'partition_leased (due_at=? AND rowid>?)'],
  ['leases that end later', /'leased' AND due_at > \? ORDER BY due_at, id/, 'partition_leased (due_at>?)'],
  [
    'back-offs',
    /^SELECT partition.* 'delayed' AND due_at IS NOT NULL ORDER BY due_at, id/,
    'partition_delayed (due_at>?)',
  ],
  ['keys that are due', /FROM pull_key WHERE forget_at <= /, 'pull_key_to_forget (forget_at<?)'],
  ['the task to purge', /finished_at < \?/, 'task_to_purge (finished_at>? AND finished_at<?)'],
  ['whether a task has rows to purge', /EXISTS \(SELECT 1 FROM lane/, 'lane_with_rows (task=?)'],
  ['tasks in a state', /FROM task WHERE state = /, 'task_by_state (state=? AND id<?)'],
  ['tasks with parked partitions', /INDEXED BY task_with_parked/, 'task_with_parked (id<?)'],
  ['mismatches', /INDEXED BY partition_mismatch/, 'partition_mismatch (lane=?)'],
  ['tasks of a producer', /FROM produced_task WHERE/, 'produced_task_newest (instance=?)'],
  ['instances seen lately', /WHERE last_seen_at >= /, 'instance_to_forget (last_seen_at>?)'],
  [
    'whether a task has a table',
    /task_table WHERE task = \? AND name/,
    'task_table_identity (task=? AND name=?)',
  ],
  ['instances unseen', /instance WHERE last_seen_at < \?/, 'instance_to_forget (last_seen_at<?)'],
  [
    'deliveries of a subscription',
    /FROM delivery WHERE subscription = \? AND event > /,
    'PRIMARY KEY (subscription=? AND event>?)',
  ],
  [
    'the history of a task by level',
    /FROM throughput WHERE task = .* at DESC, level DESC/,
    'PRIMARY KEY (task=? AND step=? AND at>? AND at<?)',
  ],
  [
    'the history of a task',
    /FROM throughput WHERE task = .* GROUP BY task, step, at/,
    'PRIMARY KEY (task=? AND step=? AND at>? AND at<?)',
  ],
  ['the states of a lane', /row_number/, 'partition_identity (lane=?)'],
  [
    'some rows of a cell',
    /^SELECT state, .* partition_identity/,
    'partition_identity (lane=? AND idx>? AND idx<?)',
  ],
  [
    'parked rows of a cell',
    /^SELECT state, .* partition_parked/,
    'partition_parked (lane=? AND idx>? AND idx<?)',
  ],
  ['history beyond what is kept', /FROM throughput WHERE step = .* OFFSET/, 'throughput_by_age (step=?)'],
  [
    'history that is too old',
    /FROM throughput WHERE step = \? AND at < \? ORDER BY/,
    'throughput_by_age (step=? AND at<?)',
  ],
  ['the newest deliveries', /AND event < \? ORDER BY event DESC/, 'PRIMARY KEY (subscription=? AND event<?)'],
  [
    'pending deliveries',
    /pending IS NOT NULL AND subscription = \? AND event > \? ORDER/,
    'delivery_pending (subscription=? AND event>?)',
  ],
  [
    'pending deliveries of a task',
    /pending IS NOT NULL AND subscription = \? AND event > \? AND event <= /,
    'delivery_pending (subscription=? AND event>? AND event<?)',
  ],
  ['nodes that ended', /draining = 1 AND last_seen_at/, 'instance_ended (last_seen_at<?)'],
]

/** Scans an index that has only matching rows, and reads no more than the limit. */
const boundedWalks = [
  /^SCAN instance USING INDEX instance_(paused|lost)$/,
  // There are at most a hundred.
  /^SCAN subscription$/,
  // Read completely on purpose when the file is opened.
  /^SCAN entry_slot$/,
  /^SCAN partition USING INDEX partition_leased$/,
  // Lists within a statement, each with a limit.
  /^SCAN (?:listed|listed_ranges|ranked|holder|active|\(subquery-\d+\))$/,
  // The rows that a statement passes as parameters.
  /^SCAN \d+-ROW VALUES CLAUSE$/,
]

/** Read completely when the disk is opened. */
const readCompletely = [/ FROM level$/, / FROM table_settings$/, / FROM sqlite_schema$/]

/** Sorts no more rows than a list with a limit has. */
const sortsAList = (sql: string, step: string): boolean =>
  step.includes('TEMP B-TREE') && / listed\b/.test(sql)

let path: string
let db: DatabaseSync
let statements: string[]

/** No statistics are gathered, so a plan depends only on the schema, not on the data. */
const planOf = (sql: string): string[] =>
  db
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map(({ detail }) => String(detail))

beforeAll(async () => {
  path = mkdtempSync(join(tmpdir(), 'baton-plans-'))
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
  const disk = await openSqliteDisk({ folder: path })
  await disk.stage(rows(1, 1, 100))
  for (const [, read] of everyRead) await read(disk)
  statements = [...new Set(prepare.mock.calls.map(([sql]) => sql.replaceAll(/\s+/g, ' ')))]
  prepare.mockRestore()
  await disk.close()
  db = new DatabaseSync(join(path, 'baton.db'))
})

afterAll(() => {
  db.close()
  rmSync(path, { recursive: true, force: true })
})

describe('the SQLite statements', () => {
  test.each(ways)('use the expected index for %s', (_what, piece, way) => {
    const found = statements.filter((sql) => piece.test(sql))
    expect(found).toHaveLength(1)
    expect(planOf(found[0] ?? '').join(' | ')).toContain(way)
  })

  test('neither scan a table, nor sort, nor build an automatic index', () => {
    const wasteful = statements
      .filter((sql) => !/^(BEGIN|COMMIT)/.test(sql) && !readCompletely.some((text) => text.test(sql)))
      .flatMap((sql) =>
        planOf(sql)
          .filter((step) => /^SCAN|TEMP B-TREE|AUTOMATIC/.test(step))
          .filter((step) => !boundedWalks.some((walk) => walk.test(step)) && !sortsAList(sql, step))
          .map((step) => `${step}: ${sql}`),
      )
    expect(statements.length).toBeGreaterThan(60)
    expect(wasteful).toEqual([])
  })
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { DataFolder } from '../../src/store/sqlite/folder.ts'
import { Session, type Verbs } from '../../src/store/sqlite/session.ts'
import { callBackOrder, leaseOf, pullOrder, settlement, some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'

/** How each statement of the hand-off finds its rows, by a piece of it that no other one has. */
const ways: readonly [what: string, piece: RegExp, way: string][] = [
  [
    'the first ready partitions',
    /^SELECT lane.* INDEXED BY partition_ready WHERE/,
    'SCAN partition USING INDEX partition_ready',
  ],
  // In this order, row by row: what is read first comes first, and nothing is read behind the limit.
  [
    'the first ready partitions of open lanes',
    /INDEXED BY partition_ready WHERE .* CROSS JOIN/,
    'CO-ROUTINE first | SEARCH partition USING INDEX partition_ready ((level,rank)>(?,?)) | SCAN first | SEARCH lane USING INTEGER PRIMARY KEY (rowid=?) | SEARCH task USING INTEGER PRIMARY KEY (rowid=?)',
  ],
  [
    'whether there is more than was looked at',
    /INDEXED BY partition_ready WHERE .* OFFSET/,
    'SEARCH partition USING COVERING INDEX partition_ready ((level,rank)>(?,?))',
  ],
  ['a lease by its id', /releases, record_count FROM partition WHERE id = /, 'INTEGER PRIMARY KEY (rowid=?)'],
  [
    'leases that are due',
    /releases, record_count .*'leased' AND due_at <=/,
    'INDEX partition_leased (due_at<?)',
  ],
  ['back-offs that are due', /'delayed' AND due_at <=/, 'INDEX partition_delayed (due_at<?)'],
  ['the next lease to end', /^SELECT due_at .*'leased' ORDER BY/, 'COVERING INDEX partition_leased'],
  ['the next back-off to end', /^SELECT due_at .*'delayed' ORDER BY/, 'COVERING INDEX partition_delayed'],
  ['held partitions of a lane', /'held' AND id > /, 'INDEX partition_held_of_lane (lane=? AND id>?)'],
  ['ready partitions of a lane', /'ready' ORDER BY id/, 'INDEX partition_ready_of_lane (lane=?)'],
  [
    'whether anything is ready on a level',
    /'ready' AND level = /,
    'COVERING INDEX partition_ready (level=?)',
  ],
  ['the leases of a key', /^SELECT leases FROM pull_key/, 'PRIMARY KEY (key=?)'],
  ['a lease that a key repeats', /secret = \? AND state = 'leased'/, 'INTEGER PRIMARY KEY (rowid=?)'],
  [
    'a partition by its identity',
    /^SELECT record_count, compute_table/,
    'INDEX partition_identity (lane=? AND idx=?)',
  ],
  ['the range around an index', /first <= \? ORDER BY first DESC/, 'PRIMARY KEY (lane=? AND first<?)'],
  [
    'a lane by its level',
    /retry_finish_text .*task = \? AND level = /,
    'autoindex_lane_1 (task=? AND level=?)',
  ],
  ['the leases of an instance', /AS leases FROM partition/, 'INDEX partition_leased (due_at>?)'],
  [
    'parked partitions of a page',
    /'parked' AND p.idx > /,
    'INDEX partition_parked_of_lane (lane=? AND idx>?)',
  ],
  ['tasks with parked partitions', /AND cancelled = 0 AND id < /, 'INDEX task_with_parked (id<?)'],
  ['partitions of a page', /p.lane = \? AND p.idx > \? ORDER/, 'INDEX partition_identity (lane=? AND idx>?)'],
]

/** Walks along an index that holds only what is looked for, and reads of it no more than the limit. */
const boundedWalks = [
  /^SCAN partition USING (COVERING )?INDEX partition_(ready|leased|delayed)$/,
  /^SCAN task_step$/,
  /^SCAN purging$/,
  // What the co-routine of that name hands on.
  /^SCAN first$/,
  // Read whole by intention: it is cleared whenever the rows are written up.
  /^SCAN journal$/,
  // Rows that a statement brings along.
  /^SCAN (\d+-ROW VALUES CLAUSE|CONSTANT ROW|\(subquery-\d+\))$/,
]

let path: string
let db: DatabaseSync
let statements: string[]

const planOf = (sql: string): string[] =>
  db
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map(({ detail }) => String(detail))

beforeAll(() => {
  path = mkdtempSync(join(tmpdir(), 'baton-plans-'))
  db = new DataFolder(path).open()
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
  const { verbs } = new Session(db, testPolicy, () => true)
  statements = [...new Set(prepare.mock.calls.map(([sql]) => sql.replaceAll(/\s+/g, ' ')))]
  prepare.mockRestore()
  fill(verbs)
})

afterAll(() => {
  db.close()
  rmSync(path, { recursive: true, force: true })
})

/** Tens of thousands of partitions in every state: a plan must not be good only while there is little. */
function fill(verbs: Verbs): void {
  const nothing = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }
  for (let task = 0; task < 10; task += 1) {
    const partitions = [0, 1, 2].flatMap((level) => some(level, 1500))
    verbs.handOff({ ...nothing, callBacks: [callBackOrder(`task-${task}`, partitions)] }, 0)
  }
  for (const outcome of ['done', 'failed', 'released', null] as const) {
    const { pulls } = verbs.handOff({ ...nothing, pulls: [pullOrder({ batch: 1000 })] }, 0)
    const leases = (pulls[0]?.partitions ?? []).map(({ lease }) => leaseOf(lease?.id ?? ''))
    if (outcome === null) continue
    const settlements = leases.map((lease) => ({ lease, order: settlement({ outcome }) }))
    verbs.handOff({ ...nothing, settles: [{ instance: null, settlements }] }, 0)
  }
}

describe('plans', () => {
  test.each(ways)('%s', (_what, piece, way) => {
    const found = statements.filter((sql) => piece.test(sql))
    expect(found).toHaveLength(1)
    const plan = planOf(found[0] ?? '')
    expect(plan.join(' | ')).toContain(way)
  })

  test('no statement reads a whole table, sorts, or builds an index of its own', () => {
    const wasteful = statements.flatMap((sql) =>
      (/^(BEGIN|COMMIT)/.test(sql) ? [] : planOf(sql))
        .filter((step) => /^SCAN|TEMP B-TREE|AUTOMATIC/.test(step))
        .filter((step) => !boundedWalks.some((walk) => walk.test(step)))
        .map((step) => `${step}: ${sql}`),
    )
    expect(statements.length).toBeGreaterThan(60)
    expect(wasteful).toEqual([])
  })
})

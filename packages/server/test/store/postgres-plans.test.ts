import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { sessionSettings } from '../../src/store/postgres/session/session-settings.ts'
import { statements } from '../../src/store/postgres/session/statement.ts'
import { testPolicy } from './conformance/harness.ts'

/** A recount of everything reads everything; it is asked for by tests and operators only. */
const readsAll = ['baton-audit-partitions', 'baton-audit-order', 'baton-audit-queues']

const MILLION = `
ALTER TABLE baton.partition SET UNLOGGED;
DROP INDEX baton.held_of_lane, baton.partition_identity;
INSERT INTO baton.task (task_id, state, level_barrier, first_call_back_at, last_call_back_at)
  SELECT 'task-' || n, 'open', false, 0, 0 FROM generate_series(1, 100) AS n;
INSERT INTO baton.lane (task, level) SELECT id, level FROM baton.task, generate_series(0, 3) AS level;
INSERT INTO baton.partition (lane, idx, level, state, rank, due_at, record_count, compute_table, called_back_at)
  SELECT l.id, n, l.level,
    CASE WHEN n < 3 THEN 'leased' WHEN n < 5 THEN 'delayed' WHEN n < 1250 THEN 'held' ELSE 'done' END,
    CASE WHEN n BETWEEN 5 AND 24 THEN n * 100 END, CASE WHEN n < 5 THEN n END, 100, 1, 0
  FROM baton.lane l, generate_series(0, 2499) AS n;
CREATE UNIQUE INDEX partition_identity ON baton.partition (lane, idx);
INSERT INTO baton.held SELECT lane, id, stay, record_count FROM baton.partition WHERE state = 'held' AND rank IS NULL;
CREATE UNIQUE INDEX held_of_lane ON baton.held (lane, id);
INSERT INTO baton.ready SELECT p.level, p.rank, p.id, p.lane, l.task
  FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE p.state = 'held' AND p.rank IS NOT NULL;
INSERT INTO baton.due SELECT state = 'delayed', due_at, id, 1, ARRAY[id], ARRAY[holder] FROM baton.partition
  WHERE state IN ('leased', 'delayed');
`

/** What a vacuum finds after everything was purged: tables with room for many rows and nobody in it. */
const EMPTIED = [
  MILLION.replace('generate_series(1, 100)', 'generate_series(1, 2)').replace(', 2499)', ', 1249)'),
  'DELETE FROM baton.held; DELETE FROM baton.ready; DELETE FROM baton.due; DELETE FROM baton.partition',
  'VACUUM (ANALYZE, TRUNCATE off)',
]

/** Which way each statement of the hand-off takes to its partitions. */
const ways: readonly [statement: string, ...indexes: string[]][] = [
  ['hand-off-plain', 'partition_pkey', 'ready_in_order'],
  ['hand-off-plain-settles', 'partition_pkey'],
  ['hand-off-plain-of-lanes', 'partition_pkey', 'ready_in_order'],
  ['hand-off-plain-settles-of-lanes', 'partition_pkey'],
  ['shrink-sets', 'due_in_order'],
  ['end-sets', 'due_in_order'],
  ['end-shrunk-sets', 'due_in_order'],
  ['hand-off-plain-pulls', 'partition_pkey', 'ready_in_order'],
  ['hand-off-plain-keyed', 'partition_pkey', 'ready_in_order'],
  ['hand-off-plain-of-lanes-keyed', 'partition_pkey', 'ready_in_order'],
  ['hand-off-plain-pulls-keyed', 'partition_pkey', 'ready_in_order'],
  ['leases-given', 'due_in_order', 'partition_pkey'],
  ['claim', 'partition_pkey', 'ready_in_order'],
  ['records-in-front', 'partition_pkey', 'ready_in_order'],
  ['lease', 'partition_pkey'],
  ['deliver', 'partition_pkey'],
  ['finish-plain', 'partition_pkey'],
  ['leave-queues', 'due_in_order', 'held_of_lane', 'partition_pkey', 'ready_of_lane'],
  ['enter-queues', 'partition_pkey'],
  ['drop-strays', 'partition_pkey', 'ready_of_lane'],
  ['drop-strays-in-front', 'partition_pkey', 'ready_in_order'],
  ['drop-strays-of-lanes', 'partition_pkey', 'ready_of_lane'],
  ['drop-strays-overdue', 'due_in_order', 'partition_pkey'],
  ['lock-partitions', 'partition_pkey'],
  ['change-partitions', 'partition_pkey'],
  ['live-leases', 'partition_pkey'],
  ['first-held', 'held_of_lane', 'ready_of_lane'],
  ['admit', 'held_of_lane'],
  ['first-ready-of-lane', 'partition_pkey', 'ready_of_lane'],
  ['set-tripwire', 'partition_pkey', 'ready_of_lane'],
  ['lanes-without-tripwire', 'held_of_lane', 'ready_of_lane'],
  ['full-windows', 'ready_of_lane'],
  ['hold'],
  ['first-held-of-lanes', 'held_of_lane', 'ready_of_lane'],
  ['admit-to-lanes', 'held_of_lane'],
  ['first-ready-of-lanes', 'partition_pkey', 'ready_of_lane'],
  ['hold-in-lanes'],
  ['places-of-waiting', 'partition_pkey', 'ready_of_lane'],
  ['windows-of-lanes', 'held_of_lane', 'ready_of_lane'],
  ['level-times', 'ready_in_order'],
  ['reasons-for-nothing', 'ready_in_order'],
  ['stored-partitions', 'partition_identity'],
  ['due-leased', 'due_in_order', 'partition_pkey'],
  ['due-delayed', 'due_in_order', 'partition_pkey'],
  ['next-due', 'due_in_order'],
  ['wake', 'partition_pkey'],
  ['leases-of-instances', 'due_in_order', 'partition_pkey'],
  ['parked-of-lanes', 'partition_parked_of_lane', 'partition_pkey'],
  ['done-from', 'partition_identity', 'partition_pkey'],
  ['waiting-held-of-lanes', 'held_of_lane', 'partition_pkey'],
  ['waiting-ready-of-lanes', 'partition_pkey', 'ready_of_lane'],
  ['waiting-parked-of-lanes', 'partition_parked_of_lane'],
  ['first-waiting-of-lanes', 'held_of_lane', 'partition_parked_of_lane', 'ready_of_lane'],
  ['purge', 'partition_identity', 'partition_pkey'],
  ['rows-left-to-purge', 'partition_identity'],
  ['rows-of-page', 'partition_identity'],
  ['parked-of-page', 'partition_parked_of_lane'],
  ['mismatches', 'partition_mismatch'],
]

/** The table of partitions and its queues: what grows with the backlog. */
const large = ['partition', 'held', 'ready', 'due']

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Filter?: string
  readonly 'Subplan Name'?: string
  readonly Plans?: readonly Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

describe.each([
  ['at 1,000,000 partitions', 1_000_000, [MILLION]],
  // A session that planned its statements at the beginning keeps those plans.
  ['of an empty database', 0, []],
  // And so does one that plans anew because of a vacuum at a moment when nobody waits.
  ['of a database that was emptied and vacuumed', 0, EMPTIED],
] as [string, number, string[]][])('query plans %s', (_, partitions, preparing) => {
  let server: PostgresServer
  let client: pg.Client

  beforeAll(async () => {
    server = await PostgresServer.start({ settings: { autovacuum: 'off', maintenance_work_mem: '128MB' } })
    const { url } = await server.createDatabase()
    const store = await openPostgresStore({ url, policy: testPolicy })
    await store.close()
    client = new pg.Client({ connectionString: url })
    await client.connect()
    for (const text of preparing) await client.query(text)
    await client.query(`${sessionSettings}; SET statement_timeout = 0`)
  }, 120_000)
  afterAll(async () => {
    await client.end()
    await server.dispose()
  })

  /** The plan that every value of the parameters is served with, and so the one to be sure of. */
  async function planOf(text: string): Promise<Plan[]> {
    const { rows } = await client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`)
    return nodesOf(rows[0]['QUERY PLAN'][0].Plan)
  }

  const onPartitions = statements.filter(
    ({ name, text }) => large.some((table) => text.includes(`baton.${table} `)) && !readsAll.includes(name),
  )

  const moments = partitions === 0 ? ['as it is'] : ['before statistics were gathered', 'with statistics']
  test.each(moments)(
    'no statement reads the table, %s',
    async (when) => {
      if (when === 'with statistics') await client.query('ANALYZE')
      const { rows } = await client.query('SELECT count(*)::int AS rows FROM baton.partition')
      expect(rows[0].rows).toBe(partitions)
      expect(onPartitions.length).toBeGreaterThan(25)
      for (const { name, text } of onPartitions) {
        const reading = (await planOf(text)).filter((node) => large.includes(node['Relation Name'] ?? ''))
        const scans = reading.map((node) => node['Node Type']).filter((type) => type.includes('Scan'))
        const looksUp = (type: string) => ['Index Scan', 'Index Only Scan', 'Tid Scan'].includes(type)
        expect(
          scans.filter((type) => !looksUp(type)),
          `${name} reads partitions otherwise`,
        ).toEqual([])
      }
    },
    60_000,
  )

  test.each(ways)('%s takes the way it is meant to', async (name, ...indexes) => {
    const found = statements.find((one) => one.name === `baton-${name}`)
    const nodes = await planOf(found?.text ?? '')
    const reading = nodes.filter((node) => large.some((table) => node['Index Name']?.startsWith(`${table}_`)))
    const used = reading.map((node) => node['Index Name'])
    // Without a condition only the order of the hand-off is read, from its front.
    const walked = reading.filter((node) => node['Index Cond'] === undefined)
    expect(walked.filter((node) => node['Index Name'] !== 'ready_in_order')).toEqual([])
    // The index of what is parked and that of the whole lane cost the same where nothing is believed to be.
    const isEmptied = preparing === EMPTIED
    const meant = indexes.map((index) =>
      isEmptied && index === 'partition_parked_of_lane' ? 'partition_identity' : index,
    )
    expect([...new Set(used)].toSorted()).toEqual(meant)
  })

  test.each([
    ['newest-tasks', 'task_pkey', '(id < $1)'],
    ['newest-tasks-in-state', 'task_by_state', '((state >= $3) AND (ROW(state, id) < ROW($3, $1)))'],
    ['newest-tasks-with-parked', 'task_with_parked', '(id < $1)'],
  ])('%s reads the tasks that it lists and no others', async (name, index, condition) => {
    const listing = statements.find((one) => one.name === `baton-${name}`)
    const nodes = await planOf(listing?.text ?? '')
    const [read, ...others] = nodes.filter((node) => node['Relation Name'] === 'task')
    expect(read).toMatchObject({ 'Index Name': index, 'Index Cond': condition })
    expect([others, read?.Filter]).toEqual([[], undefined])
    expect(nodes.map((node) => node['Node Type'])).not.toContain('Sort')
  })

  test.each(['claim', 'records-in-front'])(
    '%s walks the index of the order and sorts nothing',
    async (name) => {
      const walking = statements.find((one) => one.name === `baton-${name}`)
      const nodes = await planOf(walking?.text ?? '')
      expect(nodes.map((node) => node['Index Name'])).toContain('ready_in_order')
      expect(nodes.map((node) => node['Node Type'])).not.toContain('Sort')
    },
  )

  test.each(['take-deltas', 'level-times'])(
    '%s reads the counters that are not folded in yet once, however many lanes there are',
    async (name) => {
      const found = statements.find((one) => one.name === `baton-${name}`)
      const nodes = await planOf(found?.text ?? '')
      expect(nodes.filter((node) => node['Node Type'] === 'CTE Scan')).toHaveLength(1)
      const taking = nodes.filter((node) => node['Subplan Name']?.startsWith('CTE ')).flatMap(nodesOf)
      expect(taking.filter((node) => node['Relation Name'] === 'count_delta')).not.toEqual([])
    },
  )

  test('a claim in front of a backlog touches the pages of what it takes', async () => {
    const claim = statements.find(({ name }) => name === 'baton-claim')
    const { rows } = await client.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${claim?.text.replace('$1', '50')}`,
    )
    const plan = rows[0]['QUERY PLAN'][0].Plan
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(1000)
  })
})

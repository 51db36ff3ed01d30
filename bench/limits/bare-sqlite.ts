import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { answerCalls } from '../harness/helper-process.ts'
import { backlogBodies, callBackBody } from '../load/descriptors.ts'

/**
 * The minimum for a durable hand-off on SQLite: one table, the partial index that claims read, and the unique
 * key that makes a call-back repeatable. Everything is set-based: one statement per transaction for all
 * claims, one for all settles, one for a whole array of descriptors. Within a level it hands out by arrival,
 * so that rows next to each other on disk are read together; sharing fairly between tasks costs Baton that
 * locality.
 */
const BARE_SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE partition (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    table_name TEXT NOT NULL,
    name TEXT NOT NULL,
    records INTEGER NOT NULL,
    level INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    lease_id TEXT,
    expires_at INTEGER,
    UNIQUE (task_id, name)
  ) STRICT;
  CREATE INDEX ready ON partition (level, id) WHERE state = 0;
`

const CLAIM = `
  UPDATE partition
  SET state = 1, attempt = attempt + 1, lease_id = lower(hex(randomblob(16))), expires_at = ?
  WHERE id IN (SELECT id FROM partition WHERE state = 0 ORDER BY level, id LIMIT ?)
  RETURNING id, task_id, table_name, name, records, level, attempt, lease_id
`

const SETTLE = `
  UPDATE partition SET state = 2, expires_at = NULL
  FROM (SELECT value ->> 0 AS id, value ->> 1 AS lease_id FROM json_each(?)) AS settled
  WHERE partition.id = settled.id AND partition.lease_id = settled.lease_id AND state = 1
`

const INSERT = `
  INSERT INTO partition (task_id, table_name, name, records, level)
  SELECT value ->> 'taskId', value ->> 'computeTableName', value ->> 'partition_name',
    value ->> 'record_count', value ->> 'priorityLevel'
  FROM json_each(?) WHERE true
  ON CONFLICT DO NOTHING
`

/** The store loop without a service around it: the upper limit for Baton on SQLite. */

let database: DatabaseSync | undefined

function opened(): DatabaseSync {
  if (!database) throw new Error('open the database first')
  return database
}

function open({ folder }: { folder: string }): void {
  database = new DatabaseSync(join(folder, 'bare.db'))
  database.exec(BARE_SCHEMA)
}

function inTransaction<T>(work: () => T): T {
  const db = opened()
  db.exec('BEGIN IMMEDIATE')
  const result = work()
  db.exec('COMMIT')
  return result
}

function fill({ partitions }: { partitions: number }): void {
  const insert = opened().prepare(INSERT)
  for (const body of backlogBodies(partitions)) inTransaction(() => insert.run(body))
}

interface BarePairsInput {
  /** Claims and settles that share a transaction. */
  perTransaction: number
  seconds: number
}

interface BareResult {
  partitions: number
  seconds: number
}

/** Each transaction settles what the last one claimed, then claims the next partitions. */
function pairs({ perTransaction, seconds }: BarePairsInput): BareResult {
  const claim = opened().prepare(CLAIM)
  const settle = opened().prepare(SETTLE)
  const startedAt = performance.now()
  const deadline = startedAt + seconds * 1000
  let partitions = 0
  let held: [unknown, unknown][] = []
  let goOn = true
  while (goOn || held.length > 0) {
    goOn = goOn && performance.now() < deadline
    const settling = held
    held = inTransaction(() => {
      if (settling.length > 0) settle.run(JSON.stringify(settling))
      if (!goOn) return []
      return claim.all(Date.now() + 300_000, perTransaction).map((row) => [row['id'], row['lease_id']])
    })
    partitions += settling.length
    if (held.length === 0) goOn = false
  }
  return { partitions, seconds: (performance.now() - startedAt) / 1000 }
}

interface BareInsertInput {
  descriptorsPerArray: number
  seconds: number
}

/** One transaction per array. The time to build the array is not counted. */
function insert({ descriptorsPerArray, seconds }: BareInsertInput): BareResult {
  const statement = opened().prepare(INSERT)
  let measuredMs = 0
  let partitions = 0
  while (measuredMs < seconds * 1000) {
    const body = callBackBody(descriptorsPerArray)
    const startedAt = performance.now()
    inTransaction(() => statement.run(body))
    measuredMs += performance.now() - startedAt
    partitions += descriptorsPerArray
  }
  return { partitions, seconds: measuredMs / 1000 }
}

const calls = { open, fill, pairs, insert }

export type BareSqliteCalls = typeof calls

answerCalls(calls)

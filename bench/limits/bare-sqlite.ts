import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { answerCalls } from '../harness/helper-process.ts'
import { backlogBodies, callBackBody } from '../load/descriptors.ts'
import { BARE_SCHEMA, CLAIM, INSERT, SETTLE } from './bare-sqlite-schema.ts'

/** The store loop without a service around it: the limit of everything that Baton does on SQLite. */

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

export interface BarePairsInput {
  /** Claims and settles that share a transaction. */
  perTransaction: number
  seconds: number
}

export interface BareResult {
  partitions: number
  seconds: number
}

/** Each transaction settles what the last one claimed and claims the next. */
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

export interface BareInsertInput {
  descriptorsPerArray: number
  seconds: number
}

/** One transaction per array; making the array is not counted. */
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

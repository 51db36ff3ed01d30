import type { CalledBackPartition } from '@baton/protocol'
import { statement } from './statement.ts'
import { textArray } from './text-arrays.ts'
import type { Transaction } from './transaction.ts'

export interface NewPartition extends CalledBackPartition {
  readonly lane: number
  readonly state: 'ready' | 'held'
  readonly rank: bigint | null
  readonly refill: boolean
  readonly table: number
}

/** Ids are given in the order of the array: arrival decides between equal ranks. */
const insert = statement(
  'insert-partitions',
  `WITH arrived AS (
     INSERT INTO baton.partition
       (lane, idx, level, state, rank, refill, record_count, compute_table, spelling, called_back_at)
     SELECT lane, idx, level, state, rank, refill, record_count, compute_table, spelling, $10
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::boolean[], $7::bigint[],
       $8::bigint[], $9::text[])
       WITH ORDINALITY AS n (lane, idx, level, state, rank, refill, record_count, compute_table, spelling, position)
     ORDER BY position
     RETURNING id, lane, level, rank, state
   ), held AS (
     INSERT INTO baton.held (lane, id) SELECT lane, id FROM arrived WHERE state = 'held'
   )
   INSERT INTO baton.ready (level, rank, id, lane, task)
   SELECT level, rank, id, lane, $11 FROM arrived WHERE state = 'ready'`,
)
const taskTables = statement(
  'note-tables',
  `INSERT INTO baton.task_compute_table (task, compute_table) SELECT $1, id FROM unnest($2::bigint[]) AS n (id)
   ON CONFLICT DO NOTHING`,
)
const produced = statement(
  'note-producer',
  `INSERT INTO baton.produced_task (instance, task, last_call_back_at) VALUES ($1, $2, $3)
   ON CONFLICT (instance, task) DO UPDATE SET last_call_back_at = excluded.last_call_back_at`,
)

export function insertPartitions(
  tx: Transaction,
  task: number,
  rows: readonly NewPartition[],
  now: number,
): void {
  tx.post(insert, [
    textArray(rows.map(({ lane }) => lane)),
    textArray(rows.map(({ index }) => index)),
    textArray(rows.map(({ level }) => level)),
    textArray(rows.map(({ state }) => state)),
    textArray(rows.map(({ rank }) => rank)),
    textArray(rows.map(({ refill }) => (refill ? 'true' : 'false'))),
    textArray(rows.map(({ recordCount }) => recordCount)),
    textArray(rows.map(({ table }) => table)),
    rows.map(({ spelling }) => spelling),
    now,
    task,
  ])
}

export function noteTables(tx: Transaction, task: number, tables: readonly number[]): void {
  tx.post(taskTables, [task, tables])
}

export function noteProducer(tx: Transaction, instance: number, task: number, now: number): void {
  tx.post(produced, [instance, task, now])
}

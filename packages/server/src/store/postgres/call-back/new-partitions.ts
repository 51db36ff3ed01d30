import type { CalledBackPartition } from '@baton/protocol'
import { statement } from '../session/statement.ts'
import { textArray } from '../session/text-arrays.ts'
import type { Transaction } from '../session/transaction.ts'

export interface NewPartition extends CalledBackPartition {
  readonly lane: number
  /** Null for those behind the window. */
  readonly rank: bigint | null
  readonly refill: boolean
  readonly table: number
}

/** Ids are given in the order of the array: arrival decides between equal ranks. Who has a rank is ready. */
const insert = statement(
  'insert-partitions',
  `WITH arrived AS (
     INSERT INTO baton.partition
       (lane, idx, level, state, rank, record_count, compute_table, spelling, called_back_at)
     SELECT lane, idx, level, 'held', rank, record_count, compute_table, spelling, $8
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
       WITH ORDINALITY AS n (lane, idx, level, rank, record_count, compute_table, spelling, position)
     ORDER BY position
     RETURNING id, lane, idx, level, rank, record_count
   ), held AS (
     INSERT INTO baton.held (lane, id, record_count) SELECT lane, id, record_count FROM arrived WHERE rank IS NULL
   )
   INSERT INTO baton.ready (level, rank, id, lane, task, refill)
   SELECT level, rank, id, lane, $9, (level, idx) IN (SELECT * FROM unnest($10::bigint[], $11::bigint[]))
   FROM arrived WHERE rank IS NOT NULL`,
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
  const tripwires = rows.filter(({ refill }) => refill)
  tx.post(insert, [
    textArray(rows.map(({ lane }) => lane)),
    textArray(rows.map(({ index }) => index)),
    textArray(rows.map(({ level }) => level)),
    textArray(rows.map(({ rank }) => rank)),
    textArray(rows.map(({ recordCount }) => recordCount)),
    textArray(rows.map(({ table }) => table)),
    rows.map(({ spelling }) => spelling),
    now,
    task,
    textArray(tripwires.map(({ level }) => level)),
    textArray(tripwires.map(({ index }) => index)),
  ])
}

export function noteTables(tx: Transaction, task: number, tables: readonly number[]): void {
  tx.post(taskTables, [task, tables])
}

export function noteProducer(tx: Transaction, instance: number, task: number, now: number): void {
  tx.post(produced, [instance, task, now])
}

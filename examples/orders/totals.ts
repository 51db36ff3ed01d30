import type { Lease, PartitionDescriptor } from '@baton/client'
import type pg from 'pg'

export interface Totals {
  readonly records: number
  readonly cents: number
  readonly orderIds: bigint
}

/** Reads the records of a partition and adds them up. */
export async function readTotals(database: pg.Pool, partition: PartitionDescriptor): Promise<Totals> {
  const { rows } = await database.query({
    text: `SELECT order_id, cents FROM ${partition.computeTableName} WHERE partition_name = $1`,
    values: [partition.partition_name],
    rowMode: 'array',
  })
  let cents = 0
  let orderIds = 0
  for (const [orderId, amount] of rows as [string, string][]) {
    orderIds += Number(orderId)
    cents += Number(amount)
  }
  return { records: rows.length, cents, orderIds: BigInt(orderIds) }
}

/** The checkpoint between reading and writing, for workers in both languages. */
export const formatTotals = ({ records, cents, orderIds }: Totals): string =>
  JSON.stringify([records, cents, Number(orderIds)])

export function parseTotals(checkpoint: string): Totals {
  const [records, cents, orderIds] = JSON.parse(checkpoint) as [number, number, number]
  return { records, cents, orderIds: BigInt(orderIds) }
}

/**
 * Writes the result of a partition. A worker that was cut off may write after its successor, so the result keeps
 * the fencing token of its lease, and a smaller one changes nothing but a row for the proof. Returns whether the result was written.
 */
export async function writeTotals(
  database: pg.Pool,
  { partition_name }: PartitionDescriptor,
  lease: Lease | null,
  worker: string,
  { records, cents, orderIds }: Totals,
): Promise<boolean> {
  const { rowCount } = await database.query(
    `INSERT INTO results.order_totals AS kept (partition_name, fencing_token, worker, records, cents, order_ids)
       VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (partition_name) DO UPDATE
         SET (fencing_token, worker, records, cents, order_ids) =
             (excluded.fencing_token, excluded.worker, excluded.records, excluded.cents, excluded.order_ids)
         WHERE kept.fencing_token <= excluded.fencing_token`,
    [partition_name, lease?.fencingToken ?? 0, worker, records, cents, orderIds],
  )
  if (rowCount === 1) return true
  const refused =
    'INSERT INTO results.refused_writes (partition_name, fencing_token, worker) VALUES ($1, $2, $3)'
  await database.query(refused, [partition_name, lease?.fencingToken ?? 0, worker])
  return false
}

import { type BatonClient, type PartitionDescriptor, Producer } from '@baton/client'
import type pg from 'pg'

/** Gold, silver and bronze customers: the level of a partition is the tier of its customers. */
const TIERS = [0, 1, 2]

/** Makes orders. The same number of rows is always the same table. */
export async function makeOrders(database: pg.Client, rows: number): Promise<void> {
  await database.query('DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop')
  await database.query(
    `CREATE TABLE shop.orders AS
       SELECT id AS order_id,
              (id * 7919) % 100003 AS customer_id,
              (id * 104729) % 1000003 AS cents,
              date '2026-01-01' + (id % 365)::int AS ordered_on
       FROM generate_series(1, ${rows}::bigint) AS id`,
  )
}

/**
 * Computes the result table: the orders with the tier of their customer, sorted by tier, and a column that names
 * the partition. The partitions of a tier differ by one record at most.
 */
export async function split(database: pg.Client, taskId: string, recordsPerPartition: number): Promise<void> {
  const tiered = `SELECT *, CASE WHEN customer_id % 100 < 5 THEN 0 WHEN customer_id % 100 < 25 THEN 1 ELSE 2 END
                         AS tier FROM shop.orders`
  const counted = await database.query<{ tier: number; total: string }>(
    `SELECT tier, count(*) AS total FROM (${tiered}) AS orders GROUP BY tier`,
  )
  const totals = new Map(counted.rows.map(({ tier, total }) => [tier, Number(total)]))
  const partOfTier = TIERS.map((tier) => {
    const total = totals.get(tier) ?? 0
    return `WHEN ${tier} THEN (place - 1) * ${Math.ceil(total / recordsPerPartition)} / ${Math.max(total, 1)}`
  })
  await database.query('DROP SCHEMA IF EXISTS results CASCADE; CREATE SCHEMA results')
  await database.query(
    `CREATE TABLE results.orders AS
       SELECT order_id, customer_id, cents, ordered_on, tier,
              concat('${taskId}-', tier, '-', CASE tier ${partOfTier.join(' ')} END) AS partition_name
       FROM (SELECT *, row_number() OVER (PARTITION BY tier ORDER BY order_id) AS place
             FROM (${tiered}) AS tiered) AS placed
       ORDER BY tier, order_id`,
  )
  // The rows of a partition are next to each other, so a small index is enough.
  await database.query(
    'CREATE INDEX ON results.orders USING brin (partition_name) WITH (pages_per_range = 16)',
  )
  await database.query('ANALYZE results.orders')
  await database.query(
    `CREATE TABLE results.order_totals (
       partition_name text PRIMARY KEY,
       fencing_token bigint NOT NULL,
       worker text NOT NULL,
       records bigint NOT NULL,
       cents bigint NOT NULL,
       order_ids numeric NOT NULL
     )`,
  )
  await database.query(
    `CREATE TABLE results.order_attempts (
       partition_name text NOT NULL,
       attempt int NOT NULL,
       worker text NOT NULL,
       resumed boolean NOT NULL,
       began_at timestamptz NOT NULL DEFAULT now()
     )`,
  )
  await database.query(
    `CREATE TABLE results.refused_writes (
       partition_name text NOT NULL,
       fencing_token bigint NOT NULL,
       worker text NOT NULL
     )`,
  )
}

/** The descriptors, with the counts that the table really has. */
export async function descriptorsOf(database: pg.Client, taskId: string): Promise<PartitionDescriptor[]> {
  const { rows } = await database.query<{ partition_name: string; tier: number; records: string }>(
    `SELECT partition_name, tier, count(*) AS records FROM results.orders
       GROUP BY partition_name, tier ORDER BY tier, split_part(partition_name, '-', -1)::int`,
  )
  return rows.map(({ partition_name, tier, records }) => ({
    taskId,
    computeTableName: 'results.orders',
    partition_name,
    record_count: Number(records),
    priorityLevel: tier,
  }))
}

/** Calls the partitions back, and seals the task if their number is given. */
export async function callBack(
  client: BatonClient,
  descriptors: readonly PartitionDescriptor[],
  seal: number | false = false,
): Promise<void> {
  await new Producer(client).callBack(descriptors, { seal })
}

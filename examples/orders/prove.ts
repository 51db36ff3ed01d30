import type { BatonClient } from '@baton/client'
import type pg from 'pg'

export interface Proof {
  readonly partitions: number
  readonly records: number
  /** Partitions that were begun more than once. */
  readonly begunAgain: readonly string[]
  /** Partitions of which a worker went on from the checkpoint of another. */
  readonly resumed: readonly string[]
  /** Partitions that a worker wrote after its successor, and was refused. */
  readonly refused: readonly string[]
  /** Leases that ended without a result. */
  readonly attemptsWasted: number
  /** What is wrong. Empty if every record was counted once. */
  readonly faults: string[]
}

interface Sums {
  readonly records: string
  readonly cents: string
  readonly order_ids: string
}

/** Compares what was declared, what was reported and what is in the results with the table that was split. */
export async function prove(database: pg.Client, client: BatonClient, taskId: string): Promise<Proof> {
  const faults: string[] = []
  const task = await client.task(taskId)
  if (task.state !== 'done' || task.missingPartitions !== 0)
    faults.push(`the task is ${task.state}, and ${task.missingPartitions} partitions are missing`)

  const results = await database.query<{ partition_name: string; records: string }>(
    'SELECT partition_name, records FROM results.order_totals',
  )
  const read = new Map(results.rows.map(({ partition_name, records }) => [partition_name, Number(records)]))
  let partitions = 0
  for await (const { partition_name, record_count, reportedRecords } of client.manifest(taskId)) {
    partitions += 1
    const counts = [record_count, reportedRecords, read.get(partition_name)]
    if (counts.some((count) => count !== record_count))
      faults.push(`${partition_name}: declared, reported and read are ${counts.join(', ')}`)
  }
  if (read.size !== partitions) faults.push(`${partitions} partitions have ${read.size} results`)

  const sums = 'count(*) AS records, sum(cents) AS cents, sum(order_id) AS order_ids'
  const source = await sumsOf(database, `SELECT ${sums} FROM shop.orders`)
  const counted = await sumsOf(
    database,
    'SELECT sum(records) AS records, sum(cents) AS cents, sum(order_ids) AS order_ids FROM results.order_totals',
  )
  for (const name of ['records', 'cents', 'order_ids'] as const)
    if (source[name] !== counted[name])
      faults.push(`${name}: ${source[name]} in the table, ${counted[name]} in the results`)

  const unfenced = await database.query('SELECT 1 FROM results.order_totals WHERE fencing_token = 0')
  if (unfenced.rowCount !== 0) faults.push(`${unfenced.rowCount} results have no fencing token`)

  const again = await database.query<{ partition_name: string }>(
    'SELECT partition_name FROM results.order_attempts GROUP BY partition_name HAVING count(*) > 1 ORDER BY 1',
  )
  const resumed = await database.query<{ partition_name: string }>(
    'SELECT DISTINCT partition_name FROM results.order_attempts WHERE resumed ORDER BY 1',
  )
  const refused = await database.query<{ partition_name: string; kept: boolean }>(
    `SELECT DISTINCT partition_name, refused_writes.fencing_token < order_totals.fencing_token AS kept
       FROM results.refused_writes JOIN results.order_totals USING (partition_name) ORDER BY 1`,
  )
  for (const { partition_name, kept } of refused.rows)
    if (!kept) faults.push(`${partition_name}: a write with a larger fencing token was refused`)
  return {
    partitions,
    records: Number(source.records),
    begunAgain: again.rows.map(({ partition_name }) => partition_name),
    resumed: resumed.rows.map(({ partition_name }) => partition_name),
    refused: refused.rows.map(({ partition_name }) => partition_name),
    attemptsWasted: task.attemptsWasted,
    faults,
  }
}

async function sumsOf(database: pg.Client, text: string): Promise<Sums> {
  const { rows } = await database.query<Sums>(text)
  const { records, cents, order_ids } = rows[0] as Sums
  return { records, cents, order_ids }
}

import type { Disk, LeasedOrDelayedRow } from '../../handoff/disk.ts'
import type { Log } from '../../handoff/log.ts'
import type { LeaderRow } from '../../handoff/stored.ts'
import { outboxReadsBy, type Reader, readsBy } from '../reads.ts'
import { knownStatement, readKnown, stageStatements, unstageStatement } from './append.ts'
import { auditStatement, forgetAuditStatement, readAudit } from './audit-rows.ts'
import { backlogsStatement, readBacklog } from './backlogs.ts'
import { countCellsStatement, readCellCount } from './cells.ts'
import {
  activeInstancesStatement,
  forgetStatement,
  instanceStatement,
  instancesStatement,
  pausedInstancesStatement,
  readInstance,
  recordStatement,
} from './instance-rows.ts'
import { type NodeAddress, readLeaderRow } from './leader-row.ts'
import { LeaderWrites, type OpenedPostgres } from './leader-writes.ts'
import { migrate } from './migrate.ts'
import {
  leasesStatement,
  lookUpStatement,
  queries,
  readLists,
  readPartition,
  rowsStatement,
  selectStatement,
  valuesIn,
  waitingStatement,
} from './reads.ts'
import { probeStatement, readRecount, recountStatement } from './recounts.ts'
import { CannotConnect } from './session/connect-faults.ts'
import { BEGIN_COUNTING, BEGIN_READING, type Row, type Statement } from './session/connection.ts'
import { Channels, Connector, parseDatabaseUrl, type Timeouts } from './session/connector.ts'
import { asRefused, orUnavailable } from './session/failures.ts'
import { doneRowsStatement, leasedOrDelayedStatement, tasksWithTablesStatement } from './task-views.ts'
import { forgetThroughputStatement, readThroughput, throughputStatement } from './throughput-rows.ts'

export interface PostgresDiskOptions {
  /** In libpq's format, which allows several hosts. */
  readonly url: string
  readonly node: NodeAddress
  readonly log?: Log | undefined
  readonly timeouts?: Partial<Timeouts>
}

/** A migration may have to copy all rows. */
const MIGRATION_MILLIS = 3_600_000

const TIMEOUTS: Timeouts = { connectMillis: 3000, appendMillis: 5000, answerMillis: 40_000 }

/** Resolves when the schema is up to date; rejects with StoreRefused when the database must not be used. */
export async function openPostgresDisk({
  url,
  node,
  log,
  timeouts,
}: PostgresDiskOptions): Promise<PostgresDisk> {
  const { hosts, where } = parseDatabaseUrl(url)
  const connector = new Connector(hosts)
  const allTimeouts = { ...TIMEOUTS, ...timeouts }
  try {
    const first = await connector.connect({ ...allTimeouts, answerMillis: MIGRATION_MILLIS })
    await migrate(first).finally(() => first.close())
  } catch (error) {
    throw error instanceof CannotConnect ? error.asRefused() : asRefused(error, where)
  }
  const channels = new Channels(connector, allTimeouts)
  return postgresDisk(channels, new LeaderWrites(channels, node, log))
}

/**
 * A disk that several nodes share. Only the leader may append, flush, stage and unstage. All nodes may read,
 * and record the instances they have seen.
 */
export interface PostgresDisk extends Disk {
  open(from?: string | null): Promise<OpenedPostgres>
  readLeaderRow(): Promise<LeaderRow>
  resign(): Promise<void>
}

function postgresDisk(channels: Channels, leader: LeaderWrites): PostgresDisk {
  const { general } = channels
  const read = async (statement: Statement, begin = BEGIN_READING): Promise<Row[]> => {
    const reading = general.useWithRetry((connection) => connection.transact(begin, [statement]))
    return (await orUnavailable(reading))[0] ?? []
  }
  const reader: Reader = {
    all: async (query, ...values) =>
      (await read(selectStatement(query, values))).map((row) => query.read(valuesIn(row))),
    each: async (query, keys) =>
      (await read(lookUpStatement(query, keys))).map((row) => query.read(valuesIn(row))),
  }
  return {
    ...readsBy(reader, queries),
    open: (from) => leader.open(from),
    readLeaderRow: () => orUnavailable(readLeaderRow(general)),
    resign: () => leader.resign(),
    append: (entry) => leader.append(entry),
    flush: (rowChanges, upTo) => leader.flush(rowChanges, upTo),
    async stage(rows) {
      await leader.write(stageStatements(rows))
    },
    async unstage(ids) {
      await leader.write([unstageStatement(ids)])
    },
    leases: async (after, limit) => (await read(leasesStatement(after, limit))).map(readPartition),
    rows: async (asked) => readLists(await read(rowsStatement(asked)), asked.length),
    waiting: async (asked) => readLists(await read(waitingStatement(asked)), asked.length),
    known: async (asked) => readKnown(await read(knownStatement(asked)), asked.length),
    leasedOrDelayed: async (limit) =>
      (await read(leasedOrDelayedStatement(limit))).map(({ found }) => found as LeasedOrDelayedRow),
    async doneRows(task) {
      const [row] = await read(doneRowsStatement(task))
      return (row?.['done'] ?? 0) as number
    },
    async tasksWithTables(ids, tables) {
      const rows = await read(tasksWithTablesStatement(ids, tables))
      return rows.map((row) => ({ task: row['task'] as number, hasOthers: row['has_others'] as boolean }))
    },
    throughput: async (query) => (await read(throughputStatement(query))).map(readThroughput),
    async forgetThroughput(request) {
      const [rows] = await leader.write([forgetThroughputStatement(request)])
      return (rows?.[0]?.['gone'] ?? 0) as number
    },
    audited: async (query) => (await read(auditStatement(query))).map(readAudit),
    async forgetAudit(request) {
      const [rows] = await leader.write([forgetAuditStatement(request)])
      return (rows?.[0]?.['gone'] ?? 0) as number
    },
    countCells: async (query) => (await read(countCellsStatement(query))).map(readCellCount),
    async recordInstances(heartbeats, now) {
      if (heartbeats.length > 0) await orUnavailable(general.run(recordStatement(heartbeats, now)))
    },
    async instance(instanceId) {
      const [row] = await read(instanceStatement(instanceId))
      return row === undefined ? null : readInstance(row)
    },
    instances: async (query) => (await read(instancesStatement(query))).map(readInstance),
    pausedInstances: async () =>
      (await read(pausedInstancesStatement)).map((row) => ({
        instanceId: row['instance_id'] as string,
        pausedAt: row['paused_at'] as number,
      })),
    async activeInstances(since, limit) {
      const rows = await read(activeInstancesStatement(since, limit))
      return rows.map((row) => row['instance_id'] as string)
    },
    async forgetInstances(forget) {
      const [row] = await orUnavailable(general.run(forgetStatement(forget)))
      return (row?.['forgotten'] ?? 0) as number
    },
    outbox: {
      ...outboxReadsBy(reader, queries),
      backlogs: async (subscriptions) => (await read(backlogsStatement(subscriptions))).map(readBacklog),
    },
    async probe() {
      await orUnavailable(general.useWithRetry((connection) => connection.run(probeStatement)))
    },
    /** PostgreSQL does not report free space, only a full disk. */
    hasSpace: () => true,
    recount: async () => (await read(recountStatement, BEGIN_COUNTING)).map(readRecount),
    close: () => leader.close(),
  }
}

import type { AuditQuery, AuditRecord, ForgetAudit } from '../../handoff/audit.ts'
import {
  type Appended,
  type CellCount,
  type CellsOfLane,
  type Disk,
  type DueBackoffs,
  type DuePosition,
  type ForgetThroughput,
  type Images,
  type IndexesOfLane,
  type InstanceRowsQuery,
  KnownKeys,
  type KnownOfLane,
  type Lanes,
  type LanesFrom,
  type LeasedOrDelayedRow,
  type NamedPartitions,
  type OpenedDisk,
  type PausedInstance,
  type Recount,
  type RowsOfLane,
  type TaskDetail,
  type TaskPageQuery,
  type TaskSummary,
  type TaskWithTables,
  type ThroughputRowsQuery,
  type WaitingOfLane,
} from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import type { Log } from '../../handoff/log.ts'
import type { OutboxDisk } from '../../handoff/outbox.ts'
import type { PartitionDescriptor, StoredPartition } from '../../handoff/partition.ts'
import type {
  LeaderRow,
  StagedIds,
  StoredKey,
  StoredLevel,
  StoredTableSettings,
  StoredTask,
} from '../../handoff/stored.ts'
import type { InstanceRecord, ThroughputRow } from '../../handoff/views/queries.ts'
import { append, knownStatement, readKnown, stageStatements, unstageStatement } from './append.ts'
import { auditStatement, forgetAuditStatement, readAudit } from './audit-rows.ts'
import { countCellsStatement, readCellCount } from './cells.ts'
import {
  dueKeysStatement,
  probeStatement,
  purgeableStatement,
  readRecount,
  recountStatement,
  tasksWithRerunsStatement,
  tasksWithStagedRowsStatement,
} from './due-rows.ts'
import { deletableTo, flushStatements } from './flush.ts'
import {
  activeInstancesStatement,
  forgetStatement,
  instanceStatement,
  instancesStatement,
  pausedInstancesStatement,
  readInstance,
  recordStatement,
} from './instance-rows.ts'
import {
  entryFence,
  fence,
  type NodeAddress,
  readLeaderRow,
  resignStatement,
  takeOver,
} from './leader-row.ts'
import { migrate } from './migrate.ts'
import { postgresOutbox } from './outbox-rows.ts'
import {
  dueBackoffsStatement,
  keysStatement,
  lanesByIdStatement,
  lanesFromStatement,
  lanesOfStatement,
  leasesStatement,
  levelsStatement,
  openLanesStatement,
  openTasksStatement,
  partitionsByIdStatement,
  partitionsNamedStatement,
  readDueBackoffs,
  readKey,
  readLanes,
  readLevel,
  readLists,
  readPartition,
  readTableSettings,
  readTask,
  rowsStatement,
  tableSettingsStatement,
  tasksByIdStatement,
  tasksNamedStatement,
  waitingStatement,
} from './reads.ts'
import { CannotConnect } from './session/connect-faults.ts'
import {
  BEGIN_COUNTING,
  BEGIN_READING,
  BEGIN_WRITING,
  type Row,
  type Statement,
} from './session/connection.ts'
import { Channels, Connector, parseDatabaseUrl, type Timeouts } from './session/connector.ts'
import { asRefused, asUnavailable, foundNoRow, NotLeader } from './session/failures.ts'
import { keys, tasks } from './tables.ts'
import {
  doneRowsStatement,
  leasedOrDelayedStatement,
  readDetail,
  readSummary,
  taskDetailStatement,
  taskPageStatement,
  taskSummariesStatement,
  tasksWithTablesStatement,
} from './task-views.ts'
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
  return new PostgresDisk(new Channels(connector, allTimeouts), node, log)
}

interface OpenedPostgres extends OpenedDisk {
  readonly leaderTerm: string
  /** The database's clock at the take-over, in milliseconds. */
  readonly now: number
}

/**
 * A disk that several nodes share. Only the leader may append, flush, stage and unstage; the database checks
 * its term each time. All nodes may read, and record the instances they have seen.
 */
export class PostgresDisk implements Disk {
  readonly #channels: Channels
  readonly #node: NodeAddress
  readonly #log: Log | undefined
  /**
   * The term in which this node leads, as far as it knows. Null before, and after a write whose outcome is
   * unknown.
   */
  #leaderTerm: string | null = null
  #takenOverAt = 0
  /** The last entry that this node has appended, or that of its take-over. */
  #last = 0
  #flushed = 0
  #deletedTo = 0

  constructor(channels: Channels, node: NodeAddress, log?: Log) {
    this.#channels = channels
    this.#node = node
    this.#log = log
  }

  /**
   * With `from`, takes over only if the leader row still has this term, so that one of two nodes that miss
   * the same leader succeeds.
   */
  async open(from?: string | null): Promise<OpenedPostgres> {
    this.#leaderTerm = null
    const { flush, general } = this.#channels
    const { leaderTerm, flushed, last, unflushed, nextIds, now } = await orUnavailable(
      takeOver(flush, general, this.#node, this.#log, from),
    )
    this.#leaderTerm = leaderTerm
    this.#takenOverAt = last
    this.#last = last
    this.#flushed = flushed
    this.#deletedTo = 0
    return { last, unflushed, nextIds, now, leaderTerm }
  }

  readLeaderRow(): Promise<LeaderRow> {
    return orUnavailable(readLeaderRow(this.#channels.general))
  }

  /** For a graceful stop: other nodes then need not wait until they miss this one. */
  async resign(): Promise<void> {
    const leaderTerm = this.#leaderTerm
    this.#leaderTerm = null
    if (leaderTerm !== null) await orUnavailable(this.#channels.flush.run(resignStatement(leaderTerm)))
  }

  async append(entry: Appended): Promise<void> {
    const leaderTerm = this.#leading()
    try {
      await this.#channels.append.use((connection) => append(connection, leaderTerm, entry))
      if (this.#leaderTerm === leaderTerm) this.#last = entry.number
    } catch (error) {
      if (error instanceof KnownKeys) throw error
      this.#doubt(leaderTerm)
      throw asUnavailable(error)
    }
  }

  async flush(images: Images, upTo: number): Promise<void> {
    const leaderTerm = this.#leading()
    const request = {
      leaderTerm,
      from: this.#flushed,
      upTo,
      takenOverAt: this.#takenOverAt,
      deletedTo: this.#deletedTo,
      images,
    }
    try {
      await this.#channels.flush.use((connection) =>
        connection.transact(BEGIN_WRITING, [fence(leaderTerm), ...flushStatements(request)]),
      )
    } catch (error) {
      this.#doubt(leaderTerm)
      throw foundNoRow(error) ? new NotLeader({ cause: error }) : asUnavailable(error)
    }
    this.#flushed = Math.max(this.#flushed, upTo)
    this.#deletedTo = Math.max(this.#deletedTo, deletableTo(upTo))
  }

  async stage(rows: readonly PartitionDescriptor[]): Promise<void> {
    await this.#write(stageStatements(rows))
  }

  async unstage(ids: StagedIds): Promise<void> {
    await this.#write([unstageStatement(ids)])
  }

  async openTasks(after: number, limit: number): Promise<StoredTask[]> {
    return (await this.#read(openTasksStatement(after, limit))).map(readTask)
  }

  async openLanes(after: number, limit: number): Promise<Lanes> {
    return readLanes(await this.#read(openLanesStatement(after, limit)))
  }

  async leases(after: DuePosition, limit: number): Promise<StoredPartition[]> {
    return (await this.#read(leasesStatement(after, limit))).map(readPartition)
  }

  async levels(): Promise<StoredLevel[]> {
    return (await this.#read(levelsStatement)).map(readLevel)
  }

  async tableSettings(): Promise<StoredTableSettings[]> {
    return (await this.#read(tableSettingsStatement)).map(readTableSettings)
  }

  async tasksNamed(names: readonly string[]): Promise<StoredTask[]> {
    return (await this.#read(tasksNamedStatement(names))).map(readTask)
  }

  async tasksById(ids: readonly number[]): Promise<StoredTask[]> {
    return (await this.#read(tasksByIdStatement(ids))).map(readTask)
  }

  async lanesById(ids: readonly number[]): Promise<Lanes> {
    return readLanes(await this.#read(lanesByIdStatement(ids)))
  }

  async lanesOf(task: number, levels: readonly number[]): Promise<Lanes> {
    return readLanes(await this.#read(lanesOfStatement(task, levels)))
  }

  async lanesFrom(query: LanesFrom): Promise<Lanes> {
    return readLanes(await this.#read(lanesFromStatement(query)))
  }

  async partitionsById(ids: readonly number[]): Promise<StoredPartition[]> {
    return (await this.#read(partitionsByIdStatement(ids))).map(readPartition)
  }

  async partitionsNamed(asked: readonly NamedPartitions[]): Promise<StoredPartition[]> {
    return (await this.#read(partitionsNamedStatement(asked))).map(readPartition)
  }

  async rows(queries: readonly RowsOfLane[]): Promise<StoredPartition[][]> {
    return readLists(await this.#read(rowsStatement(queries)), queries.length)
  }

  async waiting(queries: readonly WaitingOfLane[]): Promise<StoredPartition[][]> {
    return readLists(await this.#read(waitingStatement(queries)), queries.length)
  }

  async keys(names: readonly string[]): Promise<StoredKey[]> {
    return (await this.#read(keysStatement(names))).map(readKey)
  }

  async dueBackoffs(now: number, limit: number): Promise<DueBackoffs> {
    return readDueBackoffs(await this.#read(dueBackoffsStatement(limit)), now, limit)
  }

  async known(asked: readonly IndexesOfLane[]): Promise<KnownOfLane[]> {
    return readKnown(await this.#read(knownStatement(asked)), asked.length)
  }

  async leasedOrDelayed(limit: number): Promise<LeasedOrDelayedRow[]> {
    return (await this.#read(leasedOrDelayedStatement(limit))).map(
      (row) => row['found'] as LeasedOrDelayedRow,
    )
  }

  async dueKeys(now: number, limit: number): Promise<StoredKey[]> {
    const rows = await this.#read(dueKeysStatement(now, limit))
    return rows.map(({ key }) => keys.read(key as unknown[]))
  }

  async purgeable(finishedBefore: number): Promise<StoredTask | null> {
    const [row] = await this.#read(purgeableStatement(finishedBefore))
    return row === undefined ? null : readTaskIn(row)
  }

  async tasksWithReruns(limit: number): Promise<StoredTask[]> {
    return (await this.#read(tasksWithRerunsStatement(limit))).map(readTaskIn)
  }

  async tasksWithStagedRows(): Promise<StoredTask[]> {
    return (await this.#read(tasksWithStagedRowsStatement)).map(readTaskIn)
  }

  async doneRows(task: number): Promise<number> {
    const [row] = await this.#read(doneRowsStatement(task))
    return (row?.['done'] ?? 0) as number
  }

  async taskDetail(taskId: string): Promise<TaskDetail | null> {
    const [row] = await this.#read(taskDetailStatement(taskId))
    return row === undefined ? null : readDetail(row)
  }

  async taskPage(query: TaskPageQuery): Promise<TaskSummary[]> {
    return (await this.#read(taskPageStatement(query))).map(readSummary)
  }

  async tasksWithTables(ids: readonly number[], tables: readonly string[]): Promise<TaskWithTables[]> {
    const rows = await this.#read(tasksWithTablesStatement(ids, tables))
    return rows.map((row) => ({ task: row['task'] as number, hasOthers: row['has_others'] as boolean }))
  }

  async taskSummaries(ids: readonly number[]): Promise<TaskSummary[]> {
    return (await this.#read(taskSummariesStatement(ids))).map(readSummary)
  }

  async throughput(query: ThroughputRowsQuery): Promise<ThroughputRow[]> {
    return (await this.#read(throughputStatement(query))).map(readThroughput)
  }

  async countCells(query: CellsOfLane): Promise<CellCount[]> {
    return (await this.#read(countCellsStatement(query))).map(readCellCount)
  }

  async forgetThroughput(request: ForgetThroughput): Promise<number> {
    const [, , rows] = await this.#write([forgetThroughputStatement(request)])
    return (rows?.[0]?.['gone'] ?? 0) as number
  }

  async audited(query: AuditQuery): Promise<AuditRecord[]> {
    return (await this.#read(auditStatement(query))).map(readAudit)
  }

  async forgetAudit(request: ForgetAudit): Promise<number> {
    const [, , rows] = await this.#write([forgetAuditStatement(request)])
    return (rows?.[0]?.['gone'] ?? 0) as number
  }

  async recordInstances(heartbeats: readonly Heartbeat[], now: number): Promise<void> {
    if (heartbeats.length > 0)
      await orUnavailable(this.#channels.general.run(recordStatement(heartbeats, now)))
  }

  async instance(instanceId: string): Promise<InstanceRecord | null> {
    const [row] = await this.#read(instanceStatement(instanceId))
    return row === undefined ? null : readInstance(row)
  }

  async instances(query: InstanceRowsQuery): Promise<InstanceRecord[]> {
    return (await this.#read(instancesStatement(query))).map(readInstance)
  }

  async pausedInstances(): Promise<PausedInstance[]> {
    return (await this.#read(pausedInstancesStatement)).map((row) => ({
      instanceId: row['instance_id'] as string,
      pausedAt: row['paused_at'] as number,
    }))
  }

  async activeInstances(since: number, limit: number): Promise<string[]> {
    const rows = await this.#read(activeInstancesStatement(since, limit))
    return rows.map((row) => row['instance_id'] as string)
  }

  async forgetInstances(unseenSince: number, endedSince: number, limit: number): Promise<number> {
    const [row] = await orUnavailable(
      this.#channels.general.run(forgetStatement(unseenSince, endedSince, limit)),
    )
    return (row?.['forgotten'] ?? 0) as number
  }

  readonly outbox: OutboxDisk = postgresOutbox((statement) => this.#read(statement))

  async probe(): Promise<void> {
    await orUnavailable(this.#channels.general.useWithRetry((connection) => connection.run(probeStatement)))
  }

  /** PostgreSQL does not report free space, only a full disk. */
  hasSpace(): boolean {
    return true
  }

  async recount(): Promise<Recount[]> {
    return (await this.#read(recountStatement, BEGIN_COUNTING)).map(readRecount)
  }

  async close(): Promise<void> {
    this.#leaderTerm = null
    await this.#channels.close()
  }

  #leading(): string {
    if (this.#leaderTerm === null) throw new NotLeader()
    return this.#leaderTerm
  }

  /** What the database has stored is unknown until the next `open`. */
  #doubt(leaderTerm: string): void {
    if (this.#leaderTerm === leaderTerm) this.#leaderTerm = null
  }

  /** Resolves with the rows of each statement, starting with the two fences. */
  async #write(statements: readonly Statement[]): Promise<Row[][]> {
    const leaderTerm = this.#leading()
    try {
      return await this.#channels.general.use((connection) =>
        connection.transact(BEGIN_WRITING, [
          fence(leaderTerm),
          entryFence(leaderTerm, this.#last),
          ...statements,
        ]),
      )
    } catch (error) {
      throw foundNoRow(error) ? new NotLeader({ cause: error }) : asUnavailable(error)
    }
  }

  async #read(statement: Statement, begin = BEGIN_READING): Promise<Row[]> {
    const reading = this.#channels.general.useWithRetry((connection) =>
      connection.transact(begin, [statement]),
    )
    return (await orUnavailable(reading))[0] ?? []
  }
}

const readTaskIn = (row: Row): StoredTask => tasks.read(row['task'] as unknown[])

/** Converts the error of work that fails. */
async function orUnavailable<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw asUnavailable(error)
  }
}

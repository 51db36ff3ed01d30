import type { SharedDisk } from '../../handoff/disk.ts'
import type { Log } from '../../handoff/log.ts'
import type { ClusterNode } from '../../handoff/stored.ts'
import { allReadsBy } from '../all-reads.ts'
import { heartbeatRows, recordHeartbeat } from '../instances.ts'
import type { Session } from '../statements.ts'
import { stageStatements, unstageStatement } from './append.ts'
import { arraysOf, postgres, sending, textOf } from './dialect.ts'
import { readLeaderRow } from './leader-row.ts'
import { LeaderWrites } from './leader-writes.ts'
import { migrate } from './migrate.ts'
import { byQuery, listIn, listsStatement, selectStatement, valuesIn } from './selects.ts'
import { BEGIN_READING, type Row, type Statement } from './session/connection.ts'
import { Channels, Connector, parseDatabaseUrl, type Timeouts, withConnection } from './session/connector.ts'
import { orUnavailable } from './session/errors.ts'

export interface PostgresDiskOptions {
  /** In libpq's format, which allows several hosts. */
  readonly url: string
  readonly node: ClusterNode
  readonly log?: Log | undefined
  readonly timeouts?: Partial<Timeouts>
}

const TIMEOUTS: Timeouts = { connectMillis: 3000, appendMillis: 5000, answerMillis: 40_000 }

/** Resolves when the schema is up to date; rejects with StoreRefused when the database must not be used. */
export async function openPostgresDisk({
  url,
  node,
  log,
  timeouts,
}: PostgresDiskOptions): Promise<SharedDisk> {
  const allTimeouts = { ...TIMEOUTS, ...timeouts }
  await withConnection(url, migrate, allTimeouts.connectMillis)
  const channels = new Channels(new Connector(parseDatabaseUrl(url).hosts), allTimeouts)
  return postgresDisk(channels, new LeaderWrites(channels, node, log))
}

/** Changes no row, but fails on a server that does not accept writes. */
const PROBE: Statement = { text: 'UPDATE baton.level SET virtual = virtual WHERE level = -1' }

const RECORD = textOf(recordHeartbeat(postgres, `$${postgres.instances.columns.length + 1}::bigint`))

function postgresDisk(channels: Channels, leader: LeaderWrites): SharedDisk {
  const { general } = channels
  const read = (statements: readonly Statement[]): Promise<Row[][]> =>
    orUnavailable(general.useWithRetry((connection) => connection.transact(BEGIN_READING, statements)))
  const session: Session = {
    async all(query, ...values) {
      const [rows = []] = await read([selectStatement(query, values)])
      return rows.map((row) => query.read(valuesIn(row)))
    },
    async lists(asked) {
      if (asked.length === 0) return []
      const groups = byQuery(asked)
      const statements = groups.map(([query, of]) =>
        listsStatement(
          query,
          of.map(({ values }) => values),
        ),
      )
      const found = await read(statements)
      const lists: ReturnType<(typeof asked)[number]['query']['read']>[][] = asked.map(() => [])
      for (const [group, [query, of]] of groups.entries())
        for (const [at, { place }] of of.entries())
          lists[place] = listIn(found[group]?.[at] ?? {}).map((values) => query.read(values))
      return lists
    },
    async write(...writes) {
      await leader.write(
        writes.flatMap(({ statement, rows }) => [...sending(statement.table, textOf(statement), rows)]),
      )
    },
  }
  return {
    ...allReadsBy(session, postgres),
    open: (from) => leader.open(from),
    readLeaderRow: () => orUnavailable(readLeaderRow(general)),
    resign: () => leader.resign(),
    append: (entry) => leader.append(entry),
    flush: (rowChanges, upTo) => leader.flush(rowChanges, upTo),
    stage: (rows) => leader.write(stageStatements(rows)),
    unstage: (ids) => leader.write([unstageStatement(ids)]),
    async recordInstances(heartbeats, now) {
      if (heartbeats.length === 0) return
      const values = [...arraysOf(postgres.instances, heartbeatRows(heartbeats, now)), now]
      await orUnavailable(general.run({ text: RECORD, values }))
    },
    async probe() {
      await orUnavailable(general.useWithRetry((connection) => connection.run(PROBE)))
    },
    /** PostgreSQL does not report free space, only a full disk. */
    hasSpace: () => true,
    close: () => leader.close(),
  }
}

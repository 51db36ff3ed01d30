import type { InstanceRole } from '@baton/protocol'
import { StoreUnavailable } from '../../../handoff/store.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Transactions } from '../session/transactions.ts'
import type { RowNames } from './handed-out-row.ts'
import { KnownNames } from './known-names.ts'

/** Long names that many rows share, kept once and spoken of by number. So many are known, and as many from before. */
const CACHED_NAMES = 50_000

/** Another node may forget an instance, after days of silence; so what is known of one is asked again. */
const INSTANCES_KNOWN_MILLIS = 60_000

const tablesById = statement(
  'compute-tables-by-id',
  'SELECT id, name FROM baton.compute_table WHERE id = ANY($1::bigint[])',
)
const tablesByName = statement(
  'compute-tables-by-name',
  'SELECT id, name FROM baton.compute_table WHERE name = ANY($1::text[])',
)
const insertTables = statement(
  'insert-compute-tables',
  `INSERT INTO baton.compute_table (name)
   SELECT name FROM unnest($1::text[]) WITH ORDINALITY AS n (name, position) ORDER BY position
   ON CONFLICT (name) DO NOTHING`,
)
const tasksOfLanes = statement(
  'tasks-of-lanes',
  `SELECT l.id, (SELECT task_id FROM baton.task t WHERE t.id = l.task) AS task_id FROM baton.lane l
   WHERE l.id = ANY($1::bigint[])`,
)
const instancesByName = statement(
  'instances-by-name',
  'SELECT id, instance_id FROM baton.instance WHERE instance_id = ANY($1::text[])',
)
const insertInstances = statement(
  'insert-instances',
  `INSERT INTO baton.instance (instance_id, role, first_seen_at, last_seen_at)
   SELECT name, role, $3, $3 FROM unnest($1::text[], $2::text[]) AS n (name, role) ORDER BY 1
   ON CONFLICT (instance_id) DO NOTHING`,
)

/** A name was written ahead and forgotten since, so it has to be written again. Nothing was stored. */
export class NameForgotten extends StoreUnavailable {
  constructor() {
    super(
      'store_unavailable',
      'connections to PostgreSQL were opened or lost again and again; the request can be sent again',
    )
  }
}

/** Which numbers stand for which names. */
class KnownNumbers {
  readonly tableIds = new KnownNames<string, number>()
  readonly tableNames = new KnownNames<number, string>()
  readonly tasks = new KnownNames<number, string>()

  computeTable(id: number): string {
    const name = this.tableNames.get(id)
    if (name === undefined) throw new Error(`compute table ${id} was not loaded`)
    return name
  }

  taskOfLane(lane: number): string {
    const name = this.tasks.get(lane)
    if (name === undefined) throw new Error(`the task of lane row ${lane} was not loaded`)
    return name
  }

  keepTables(rows: readonly Row[]): void {
    for (const row of rows) {
      this.tableIds.set(row['name'] as string, row['id'] as number)
      this.tableNames.set(row['id'] as number, row['name'] as string)
    }
  }
}

/**
 * Written ahead of the transaction that needs them: a name that then goes unused does no harm, and
 * nobody waits for somebody else's transaction because both met a new name.
 *
 * After a fail-over that lacks the last commits, or a restore, sequences issue numbers again. So what is known is forgotten
 * when a connection is opened or lost. An answer that was asked for before is not kept: it may come from a lost session.
 */
export class Names {
  readonly #transactions: Transactions
  #known = new KnownNumbers()
  readonly #instances = new KnownNames<string, { readonly id: number; readonly since: number }>()
  /** What was learned of instances before is asked again. */
  #instancesSince = 0

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  /** The database may have lost its last commits. Hand-offs under way still know their instances. */
  forget(): void {
    this.#known = new KnownNumbers()
    this.forgetInstances()
  }

  /** Throws NameForgotten where that happened after it was written down. */
  computeTableId(name: string): number {
    const id = this.#known.tableIds.get(name)
    if (id === undefined) throw new NameForgotten()
    return id
  }

  knowsInstance(name: string): boolean {
    const since = this.#instances.get(name)?.since ?? -1
    return since >= this.#instancesSince && since > performance.now() - INSTANCES_KNOWN_MILLIS
  }

  knownInstance(name: string): number {
    const known = this.#instances.get(name)
    if (known === undefined) throw new Error(`instance ${name} was not written down`)
    return known.id
  }

  /** Resolves with how to name the compute tables of these rows. */
  async loadTables(
    tx: Transaction,
    rows: readonly { readonly computeTable: number }[],
  ): Promise<(id: number) => string> {
    const known = this.#known
    const missing = new Set<number>()
    for (const { computeTable } of rows) if (!known.tableNames.has(computeTable)) missing.add(computeTable)
    if (missing.size > 0) known.keepTables(await tx.run(tablesById, [[...missing]]))
    return (id) => known.computeTable(id)
  }

  /** Of rows of partitions, which refer to them by lane and by compute table. Neither is ever renamed. */
  async namesOf(rows: readonly Row[]): Promise<RowNames[]> {
    const known = this.#known
    const isKnown = ({ lane, compute_table: table }: Row) =>
      known.tasks.has(lane as number) && known.tableNames.has(table as number)
    if (!rows.every(isKnown)) {
      this.#trim()
      const [tasks, tables] = await Promise.all([
        this.#transactions.runOne(tasksOfLanes, [[...new Set(rows.map(({ lane }) => lane))]]),
        this.#transactions.runOne(tablesById, [[...new Set(rows.map(({ compute_table: table }) => table))]]),
      ])
      for (const row of tasks) known.tasks.set(row['id'] as number, row['task_id'] as string)
      known.keepTables(tables)
    }
    return rows.map(({ lane, compute_table: table }) => ({
      taskId: known.taskOfLane(lane as number),
      computeTableName: known.computeTable(table as number),
    }))
  }

  async writeTables(names: Iterable<string>): Promise<void> {
    const known = this.#known
    const missing = [...new Set(names)].filter((name) => !known.tableIds.has(name))
    if (missing.length === 0) return
    this.#trim()
    let rows = await this.#transactions.runOne(tablesByName, [missing])
    if (rows.length < missing.length) {
      await this.#transactions.runOne(insertTables, [missing])
      rows = await this.#transactions.runOne(tablesByName, [missing])
    }
    known.keepTables(rows)
  }

  async writeInstances(instances: ReadonlyMap<string, InstanceRole>): Promise<void> {
    const since = performance.now()
    const missing = [...instances.keys()].filter((name) => !this.knowsInstance(name))
    if (missing.length === 0) return
    this.#trim()
    let rows = await this.#transactions.runOne(instancesByName, [missing])
    if (rows.length < missing.length) {
      const roles = missing.map((name) => instances.get(name))
      await this.#transactions.runOne(insertInstances, [missing, roles, await this.#transactions.now()])
      rows = await this.#transactions.runOne(instancesByName, [missing])
    }
    for (const row of rows)
      this.#instances.set(row['instance_id'] as string, { id: row['id'] as number, since })
  }

  /** Some are gone; hand-offs under way still know theirs. */
  forgetInstances(): void {
    this.#instancesSince = performance.now()
  }

  #trim(): void {
    const { tableIds, tableNames, tasks } = this.#known
    if (tableIds.recent + tasks.recent + this.#instances.recent < CACHED_NAMES) return
    for (const known of [tableIds, tableNames, tasks, this.#instances]) known.age()
  }
}

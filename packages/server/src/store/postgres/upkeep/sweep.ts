import type { WallClock } from '../../../handoff/clock.ts'
import { rankRetry } from '../../../handoff/rules/fair-order.ts'
import { next } from '../../../handoff/rules/life-cycle.ts'
import type { Policy } from '../../../handoff/rules/policy.ts'
import { judgeCancellation, judgeExpiry } from '../../../handoff/rules/settlement.ts'
import type { SweepOrder, SweepResult } from '../../../handoff/store.ts'
import type { Alone } from '../alone/alone.ts'
import { CountDeltas } from '../counters/count-deltas.ts'
import { levelsToRank } from '../counters/level-times.ts'
import {
  applyChange,
  type PartitionEntry,
  readStanding,
  standingColumns,
  standingJoins,
  writeChanges,
} from '../leases/partitions.ts'
import { lockLanesToWake, wakePartitions } from '../leases/wake.ts'
import { lockedOf } from '../queues/places.ts'
import { dropStraysOverdue } from '../queues/strays.ts'
import type { Roller } from '../roll/roller.ts'
import { NOW, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Transactions } from '../session/transactions.ts'
import { saveLaneTags } from '../windows/lanes.ts'

/** All that a node asks while nothing is due: once a second, two look-ups. */
const nextDue = statement(
  'next-due',
  `SELECT
     (SELECT due_at FROM baton.due WHERE NOT delayed ORDER BY due_at LIMIT 1) AS lease,
     (SELECT due_at FROM baton.due WHERE delayed ORDER BY due_at LIMIT 1) AS backoff,
     EXISTS (SELECT FROM baton.count_delta) AS unfolded,
     ${NOW} AS now`,
)
/** Nodes that sweep at the same time share the work: each skips what another has taken. */
const due = (state: 'leased' | 'delayed') =>
  statement(
    `due-${state}`,
    `SELECT ${standingColumns} FROM (
       SELECT unnest(ids) AS id, number FROM baton.due WHERE ${state === 'delayed' ? '' : 'NOT '}delayed AND due_at <= $1
       ORDER BY due_at OFFSET 0
     ) q ${lockedOf('*', `state = '${state}' AND due_with = q.number`)} ${standingJoins} LIMIT $2`,
  )
const dueLeases = due('leased')
const dueBackoffs = due('delayed')

interface Swept {
  readonly expired: number
  readonly parked: number
  readonly woken: number
  readonly more: boolean
}

export class Sweep {
  readonly #transactions: Transactions
  readonly #policy: Policy
  readonly #clock: WallClock | undefined
  readonly #roller: Roller
  readonly #alone: Alone

  constructor(parts: {
    transactions: Transactions
    policy: Policy
    clock: WallClock | undefined
    roller: Roller
    alone: Alone
  }) {
    this.#transactions = parts.transactions
    this.#policy = parts.policy
    this.#clock = parts.clock
    this.#roller = parts.roller
    this.#alone = parts.alone
  }

  /** As long as nothing is due, a node that is alone stays so. */
  async run(order: SweepOrder): Promise<SweepResult> {
    const { inMillis } = await this.#alone.show((transactions) =>
      this.#nextDue(transactions, order.expireLeases),
    )
    if (inMillis !== null && inMillis <= 0) return this.#alone.transact(() => this.#sweepDue(order))
    return { woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis: inMillis }
  }

  async #sweepDue({ limit, expireLeases }: SweepOrder): Promise<SweepResult> {
    const swept = await this.#transactions.run((tx) => this.#sweep(tx, limit, expireLeases))
    // A lease that expires for good may be the last that a barrier waited for.
    const opened = await this.#roller.settleUp()
    const after = await this.#nextDue(this.#transactions, expireLeases)
    return {
      ...swept,
      woken: swept.woken + opened,
      nextDueInMillis: after.inMillis === null ? null : Math.max(0, after.inMillis),
    }
  }

  async #nextDue(transactions: Transactions, withLeases: boolean): Promise<{ inMillis: number | null }> {
    const [row] = await transactions.runOne(nextDue)
    // A node that died may have left counters behind.
    if (row?.['unfolded'] === true) this.#roller.kick()
    const now = this.#clock?.() ?? (row?.['now'] as number)
    const lease = withLeases ? (row?.['lease'] as number | null) : null
    const earliest = Math.min(
      lease ?? Number.POSITIVE_INFINITY,
      (row?.['backoff'] as number | null) ?? Number.POSITIVE_INFINITY,
    )
    return { inMillis: Number.isFinite(earliest) ? earliest - now : null }
  }

  /** Leases before back-offs: one that ends with no back-off at all is ready within the same sweep. */
  async #sweep(tx: Transaction, limit: number, expireLeases: boolean): Promise<Swept> {
    const now = await tx.now()
    const deltas = new CountDeltas()
    const expired = expireLeases ? (await tx.run(dueLeases, [now, limit])).map(readStanding) : []
    for (const partition of expired) this.#expire(partition, deltas, now)
    writeChanges(tx, expired)
    const waking = (await tx.run(dueBackoffs, [now, limit])).map(readStanding)
    const woken = await this.#wake(tx, waking, deltas, now)
    await deltas.flush(tx)
    // Something is due and nobody is: unless others have them locked, these places would be due for ever.
    if (expired.length + waking.length === 0) await tx.write(dropStraysOverdue, [now])
    return {
      expired: expired.length,
      parked: expired.filter(({ state }) => state === 'parked').length,
      woken,
      more: expired.length === limit || waking.length === limit,
    }
  }

  #expire(partition: PartitionEntry, deltas: CountDeltas, now: number): void {
    const change = partition.taskCancelled
      ? judgeCancellation(partition)
      : judgeExpiry(partition, this.#policy, Math.random())
    applyChange(partition, change, deltas, this.#policy, now)
  }

  /** The back-off ended: back into the order through the lane's second tag, unless it kept its rank. */
  async #wake(
    tx: Transaction,
    partitions: readonly PartitionEntry[],
    deltas: CountDeltas,
    now: number,
  ): Promise<number> {
    const ended = partitions.filter(({ taskCancelled }) => taskCancelled)
    for (const partition of ended) this.#expire(partition, deltas, now)
    writeChanges(tx, ended)
    const waking = partitions.filter(({ taskCancelled }) => !taskCancelled)
    if (waking.length === 0) return 0
    const lanes = await lockLanesToWake(tx, waking)
    const times = await levelsToRank(
      tx,
      waking.map(({ lane }) => lane.level),
      deltas,
    )
    const rows = waking.map((partition) => {
      const lane = lanes.get(partition.lane.id)
      const time = times.get(partition.lane.level)
      if (lane === undefined || time === undefined) throw new Error('a partition wakes without its lane')
      const to = partition.laneIsOpen ? next('delayed', 'wake') : next(next('delayed', 'wake'), 'hold')
      deltas.move(partition.lane, 'delayed', to, partition.recordCount)
      if (to !== 'ready') return { id: partition.id, rank: null }
      return { id: partition.id, rank: partition.keptRank ?? rankRetry(time, lane, partition.recordCount) }
    })
    wakePartitions(tx, rows)
    saveLaneTags(tx, [...lanes.values()])
    return rows.filter(({ rank }) => rank !== null).length
  }
}

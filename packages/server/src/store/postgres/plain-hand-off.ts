import { formatLeaseId } from '../../handoff/lease-id.ts'
import type { Secrets } from '../../handoff/lease-secrets.ts'
import { LEASE_MAX_MILLIS, leaseMillis, type Policy } from '../../handoff/policy.ts'
import { Portion, share } from '../../handoff/sharing.ts'
import {
  type HandedOut,
  type HandOffBatch,
  type PullOrder,
  type PullResult,
  StoreUnavailable,
} from '../../handoff/store.ts'
import type { Row } from './connection.ts'
import { handedOutOf } from './handed-out-row.ts'
import { LOW_WATER } from './lanes.ts'
import type { Names } from './names.ts'
import { leasesGiven, plainHandOffs } from './plain-statement.ts'
import { dropStrays } from './queues.ts'
import { type PlainSettlements, plainSettlements, plainValues } from './settle-plain.ts'
import { textArray } from './text-arrays.ts'
import type { Transactions } from './transactions.ts'

export interface PlainBatch {
  readonly settlements: PlainSettlements
  /** The most partitions that its pulls ask for. */
  readonly appetite: number
}

export interface PlainOutcome {
  readonly now: number
  /** Partitions whose settlement has to be judged. */
  readonly leftOver: ReadonlySet<number>
  /** A task with a level barrier is concerned. */
  readonly mayOpenLevels: boolean
  /** Undefined when nothing was claimed, because settlements come first. */
  readonly pulls: readonly PullResult[] | undefined
  readonly earliestDueAt: number | null
  /** Lanes whose tripwire was handed out. */
  readonly tripped: readonly number[]
  readonly claimed: number
}

/** Undefined for a batch that has anything but settlements of finished work and pulls for a number of partitions. */
export function plainBatch(batch: HandOffBatch, policy: Policy): PlainBatch | undefined {
  const { renews, undos, callBacks, pulls, settles } = batch
  if (renews.length + undos.length + callBacks.length > 0 || policy.delivery === 'at-most-once')
    return undefined
  if (pulls.some(({ key, records }) => key !== null || records !== null)) return undefined
  const appetite = pulls.reduce((sum, { batch: wanted }) => sum + wanted, 0)
  if (appetite > LOW_WATER) return undefined
  const settlements = plainSettlements(batch)
  const asked = settles.reduce((sum, { settlements: of }) => sum + of.length, 0)
  return asked === settlements.size ? { settlements, appetite } : undefined
}

interface Given {
  readonly row: Row
  readonly recordCount: number
  readonly secret: string
}

export class PlainHandOffs {
  readonly #transactions: Transactions
  readonly #policy: Policy
  readonly #names: Names
  readonly #secrets: Secrets

  constructor(transactions: Transactions, policy: Policy, names: Names, secrets: Secrets) {
    this.#transactions = transactions
    this.#policy = policy
    this.#names = names
    this.#secrets = secrets
  }

  async run(pulls: readonly PullOrder[], { settlements, appetite }: PlainBatch): Promise<PlainOutcome> {
    const { leaseMillis: base, leaseMillisPerThousandRecords: perThousand } = this.#policy
    const secrets = Array.from({ length: appetite }, () => this.#secrets.next())
    const { both, settles, pulls: claims } = plainHandOffs
    const statement = settlements.size === 0 ? claims : appetite === 0 ? settles : both
    const rows = await this.#transactions.runAlone(statement, [
      ...plainValues(settlements, this.#policy, this.#transactions.knownNow),
      appetite,
      textArray(secrets),
      textArray(this.#holders(pulls)),
      base,
      perThousand,
      LEASE_MAX_MILLIS,
    ])
    if (rows === undefined) return this.#lookUp(pulls, settlements, secrets)
    const [first] = rows
    if (first === undefined) throw new Error('a hand-off came back without its answer')
    const leftOver = new Set((first['left_over'] as string[] | null)?.map(Number))
    const mayOpenLevels = first['may_open'] as boolean
    const given = first['id'] === null ? [] : rows
    const now = first['now'] as number
    const claimed = this.#answer(
      pulls,
      given.map((row, place) => givenOf(row, secrets[place])),
      now,
    )
    if ((first['taken'] as number) < given.length) await this.#dropStrays(given)
    const tripped = new Set(given.flatMap((row) => (row['refill'] === true ? (row['lane'] as number) : [])))
    const wasClaimed = leftOver.size === 0 && !mayOpenLevels
    return {
      now,
      leftOver,
      mayOpenLevels,
      pulls: wasClaimed ? claimed.results : undefined,
      earliestDueAt: claimed.earliestDueAt,
      tripped: [...tripped],
      claimed: given.length,
    }
  }

  /** The leases are given: if the store is away now, what is left behind is removed later. */
  async #dropStrays(given: readonly Row[]): Promise<void> {
    try {
      await this.#transactions.read(dropStrays, [given.map((row) => row['id'])])
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  /**
   * It was committed and the answer got lost. The leases are found by their secrets; settlements are
   * judged once more, which changes nothing where they were accepted.
   */
  async #lookUp(
    pulls: readonly PullOrder[],
    settlements: PlainSettlements,
    secrets: readonly string[],
  ): Promise<PlainOutcome> {
    const rows = secrets.length === 0 ? [] : await this.#transactions.read(leasesGiven, [secrets])
    const bySecret = new Map(rows.map((row) => [row['secret'] as string, row]))
    const given = secrets.flatMap((secret) => {
      const row = bySecret.get(secret)
      return row === undefined ? [] : givenOf(row, secret)
    })
    const now = (rows[0]?.['now'] as number | undefined) ?? (await this.#transactions.now())
    const { results, earliestDueAt } = this.#answer(pulls, given, now)
    return {
      now,
      leftOver: new Set(settlements.keys()),
      mayOpenLevels: true,
      pulls: given.length === 0 ? undefined : results,
      earliestDueAt,
      tripped: [],
      claimed: given.length,
    }
  }

  #holders(pulls: readonly PullOrder[]): (number | null)[] {
    return pulls.flatMap(({ instance, batch }) => {
      const holder = instance === null ? null : this.#names.knownInstance(instance)
      return Array.from({ length: batch }, () => holder)
    })
  }

  #answer(
    pulls: readonly PullOrder[],
    given: readonly Given[],
    now: number,
  ): { results: PullResult[]; earliestDueAt: number | null } {
    const portions = pulls.map((order) => new Portion<Given>(order))
    share(given, portions)
    let earliestDueAt: number | null = null
    const results = portions.map(({ taken }) => ({
      partitions: taken.map((one) => {
        const dueAt = now + leaseMillis(this.#policy, one.recordCount)
        if (earliestDueAt === null || dueAt < earliestDueAt) earliestDueAt = dueAt
        return handedOut(one, dueAt, now)
      }),
      repeated: false,
    }))
    return { results, earliestDueAt }
  }
}

function givenOf(row: Row, secret = ''): Given {
  return { row, recordCount: row['record_count'] as number, secret }
}

function handedOut({ row, secret }: Given, expiresAt: number, now: number): HandedOut {
  const lease = { partition: row['id'] as number, term: (row['term'] as number) + 1, secret }
  return handedOutOf(row, formatLeaseId(lease), expiresAt, now)
}

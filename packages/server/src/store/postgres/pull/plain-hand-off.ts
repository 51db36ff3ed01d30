import type { Secrets } from '../../../handoff/lease-secrets.ts'
import { next } from '../../../handoff/rules/life-cycle.ts'
import { LEASE_MAX_MILLIS, type Policy } from '../../../handoff/rules/policy.ts'
import {
  type Ask,
  type HandOffBatch,
  type PullOrder,
  type PullResult,
  StoreUnavailable,
} from '../../../handoff/store.ts'
import { type PlainSettlements, plainSettlements, plainValues } from '../leases/settle-plain.ts'
import { largestSet } from '../queues/due-sets.ts'
import { dropStrays, dropStraysInFront } from '../queues/strays.ts'
import type { Names } from '../rows/names.ts'
import type { Row } from '../session/statement.ts'
import { textArray } from '../session/text-arrays.ts'
import type { Transactions } from '../session/transactions.ts'
import type { Claimed } from '../windows/filling.ts'
import { LARGEST_CLAIM } from '../windows/lanes.ts'
import { LanesOfLeases } from './lanes-of-leases.ts'
import { leasesGiven, plainHandOffs } from './plain-statement.ts'
import { appetiteOf } from './pull.ts'
import { type Given, sharedOut } from './shared-out.ts'

export interface PlainBatch {
  readonly settlements: PlainSettlements
  /** The most partitions that its pulls ask for. */
  readonly appetite: number
}

export interface PlainOutcome extends Claimed {
  readonly now: number
  /** Partitions whose settlement has to be judged. */
  readonly leftOver: ReadonlySet<number>
  /** A task with a level barrier is concerned. */
  readonly mayOpenLevels: boolean
  /** Undefined when nothing was claimed, because settlements come first. */
  readonly pulls: readonly PullResult[] | undefined
  readonly earliestDueAt: number | null
  /** Sets of leases that have to shrink; see shrinking.ts. */
  readonly setsLeft: readonly string[]
}

/** Whether a request is settlements of finished work or a pull for a number of partitions, or both. */
export function isPlain({ settle, renew, undo, callBack, pull }: Ask): boolean {
  if ((renew ?? undo ?? callBack) !== undefined || (pull?.records ?? null) !== null) return false
  return settle === undefined || settle.settlements.every(({ order }) => order.outcome === 'done')
}

/** Undefined for a batch that has anything but settlements of finished work and pulls for a number of partitions. */
export function plainBatch(batch: HandOffBatch, policy: Policy): PlainBatch | undefined {
  const { renews, undos, callBacks, pulls, settles } = batch
  if (renews.length + undos.length + callBacks.length > 0 || policy.delivery === 'at-most-once')
    return undefined
  if (pulls.some(({ records }) => records !== null) || hasTwins(pulls)) return undefined
  const appetite = appetiteOf(pulls)
  if (appetite > LARGEST_CLAIM) return undefined
  const settlements = plainSettlements(batch)
  const asked = settles.reduce((sum, { settlements: of }) => sum + of.length, 0)
  return asked === settlements.size ? { settlements, appetite } : undefined
}

export class PlainHandOffs {
  readonly #transactions: Transactions
  readonly #policy: Policy
  readonly #names: Names
  readonly #secrets: Secrets
  readonly #lanes = new LanesOfLeases()

  constructor(transactions: Transactions, policy: Policy, names: Names, secrets: Secrets) {
    this.#transactions = transactions
    this.#policy = policy
    this.#names = names
    this.#secrets = secrets
  }

  async run(pulls: readonly PullOrder[], { settlements, appetite }: PlainBatch): Promise<PlainOutcome> {
    const secrets = Array.from({ length: appetite }, () => this.#secrets.next())
    const rows = await this.#send(pulls, settlements, secrets)
    if (rows === undefined) return this.lookUp(pulls, settlements, secrets)
    const [first, ...given] = rows
    if (first === undefined || first['now'] === null)
      throw new Error('a hand-off came back without its answer')
    const leftOver = leftOverOf(settlements, first)
    await this.#dropStrays(given, first)
    for (const row of given) this.#lanes.remember(row['id'] as number, row['lane'] as number)
    const now = first['now'] as number
    const claimed = sharedOut(pulls, secrets, await this.#named(given), this.#policy, now)
    const tripped = new Set(((first['tripped'] ?? []) as string[]).map(Number))
    const mayOpenLevels = first['may_open'] === true
    const wasClaimed = leftOver.size === 0 && !mayOpenLevels && first['keys_free'] !== false
    return {
      now,
      leftOver,
      mayOpenLevels,
      pulls: wasClaimed ? claimed.results : undefined,
      earliestDueAt: claimed.earliestDueAt,
      tripped: [...tripped],
      claimed: given.length,
      setsLeft: (first['sets_left'] ?? []) as string[],
    }
  }

  #send(
    pulls: readonly PullOrder[],
    settlements: PlainSettlements,
    secrets: readonly string[],
  ): Promise<Row[] | undefined> {
    const { leaseMillis: base, leaseMillisPerThousandRecords: perThousand } = this.#policy
    const { knownNow } = this.#transactions
    const claim: unknown[] = [
      secrets.length,
      textArray(secrets),
      textArray(this.#holders(pulls)),
      largestSet(this.#policy),
      base,
      perThousand,
      LEASE_MAX_MILLIS,
      next('ready', 'lease'),
    ]
    const isKeyed = pulls.some(({ key }) => key !== null)
    if (isKeyed) claim.push(...keysAndPlaces(pulls))
    if (settlements.size === 0) {
      const statement = isKeyed ? plainHandOffs.pullsKeyed : plainHandOffs.pulls
      return this.#transactions.runAlone(statement, [knownNow, ...claim])
    }
    const lanes = this.#lanes.take(settlements.keys())
    const settle = plainValues(settlements, this.#policy, knownNow)
    if (lanes !== undefined) settle.push(textArray(lanes))
    const { both, bothKeyed, settles } =
      lanes === undefined ? plainHandOffs.lanesUnknown : plainHandOffs.lanesKnown
    if (secrets.length === 0) return this.#transactions.runAlone(settles, settle)
    return this.#transactions.runAlone(isKeyed ? bothKeyed : both, [...settle, ...claim])
  }

  /**
   * Removes the places that the statement could not see or had to leave. It is committed: if the store is away
   * now, they are removed later.
   */
  async #dropStrays(given: readonly Row[], { found = 0 }: Row): Promise<void> {
    if (given.length === (found as number)) return
    try {
      await this.#transactions.runOne(dropStrays, [given.map((row) => row['id'])])
      await this.#transactions.runOne(dropStraysInFront)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  /**
   * It was committed and the answer got lost. The leases are found by their secrets; settlements are
   * judged once more, which changes nothing where they were accepted.
   */
  async lookUp(
    pulls: readonly PullOrder[],
    settlements: PlainSettlements,
    secrets: readonly string[],
  ): Promise<PlainOutcome> {
    const rows = secrets.length === 0 ? [] : await this.#transactions.runOne(leasesGiven, [secrets])
    const now = (rows[0]?.['now'] as number | undefined) ?? (await this.#transactions.now())
    const { results, earliestDueAt } = sharedOut(pulls, secrets, await this.#named(rows), this.#policy, now)
    return {
      now,
      leftOver: new Set(settlements.keys()),
      mayOpenLevels: true,
      pulls: rows.length === 0 ? undefined : results,
      earliestDueAt,
      tripped: lanesOf(rows),
      claimed: rows.length,
      setsLeft: [],
    }
  }

  async #named(rows: readonly Row[]): Promise<Given[]> {
    const names = await this.#names.namesOf(rows)
    return names.map((of, at) => ({ row: rows[at] ?? {}, names: of }))
  }

  #holders(pulls: readonly PullOrder[]): (number | null)[] {
    return pulls.flatMap(({ instance, batch }) => {
      const holder = instance === null ? null : this.#names.knownInstance(instance)
      return Array.from({ length: batch }, () => holder)
    })
  }
}

/** Whether a tripwire was among them is not known: a window that is filled once more does no harm. */
const lanesOf = (rows: readonly Row[]) => [...new Set(rows.map((row) => row['lane'] as number))]

/** A second pull with the same key needs the first one's outcome. */
function hasTwins(pulls: readonly PullOrder[]): boolean {
  const keys = pulls.flatMap(({ key }) => key ?? [])
  return new Set(keys).size < keys.length
}

/** The key of each pull, and which of the secrets is its first. */
function keysAndPlaces(pulls: readonly PullOrder[]): unknown[] {
  let next = 1
  const places = pulls.map(({ batch }) => {
    const first = next
    next += batch
    return first
  })
  return [pulls.map(({ key }) => key), textArray(places)]
}

/** What was finished is told only when it is not all. */
function leftOverOf(settlements: PlainSettlements, { finished }: Row): ReadonlySet<number> {
  const leftOver = new Set<number>()
  if (finished === null || finished === undefined) return leftOver
  const plain = new Set((finished as string[]).map(Number))
  for (const id of settlements.keys()) if (!plain.has(id)) leftOver.add(id)
  return leftOver
}

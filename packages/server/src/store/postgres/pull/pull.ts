import type { Secrets } from '../../../handoff/lease-secrets.ts'
import { earlier } from '../../../handoff/rules/earlier.ts'
import { formatLeaseId } from '../../../handoff/rules/lease-id.ts'
import { next } from '../../../handoff/rules/life-cycle.ts'
import { leaseMillis, type Policy } from '../../../handoff/rules/policy.ts'
import { Portion, share } from '../../../handoff/rules/sharing.ts'
import type { HandedOut, PullOrder, PullResult } from '../../../handoff/store.ts'
import type { CountDeltas } from '../counters/count-deltas.ts'
import { largestSet } from '../queues/due-sets.ts'
import type { Names } from '../rows/names.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Claimed } from '../windows/filling.ts'
import { fillAtHand } from '../windows/lanes.ts'
import { type Candidate, type Grant, writeDeliveries, writeLeases } from './claim.ts'
import { claimFor, FIRST_GUESS } from './claim-for.ts'
import { type KeptLeases, type KeyedLeases, liveLeases, lockKeys, rememberKeys } from './pull-keys.ts'

interface Serving {
  readonly position: number
  readonly order: PullOrder
  readonly portion: Portion<Candidate>
  readonly handedOut: HandedOut[]
}

export interface Pulled {
  /** Undefined for a pull whose twin is under way on another node: it has to be asked again. */
  readonly results: readonly (PullResult | undefined)[]
  readonly earliestDueAt: number | null
  /** Partitions that moved up into the windows of their lanes behind those handed out. */
  readonly movedUp: number
  /** Lanes whose window has to be filled after the commit: they were somebody else's at the moment. */
  readonly lanesToFill: readonly number[]
}

/** The most partitions that pulls may take. */
export function appetiteOf(orders: readonly PullOrder[]): number {
  return orders.reduce((sum, { batch }) => sum + batch, 0)
}

export function claimedBy({ results, lanesToFill }: Pulled): Claimed {
  const claimed = results.reduce((sum, result) => sum + (result?.partitions.length ?? 0), 0)
  return { claimed, tripped: lanesToFill }
}

const NOTHING_GIVEN = { dueAt: null, tripped: [] }

/** All pulls that one node has at the same time, in one claim. */
export class Pull {
  readonly #policy: Policy
  readonly #names: Names
  readonly #secrets: Secrets

  constructor(policy: Policy, names: Names, secrets: Secrets) {
    this.#policy = policy
    this.#names = names
    this.#secrets = secrets
  }

  async run(
    tx: Transaction,
    orders: readonly PullOrder[],
    deltas: CountDeltas,
    waitForTwins: boolean,
  ): Promise<Pulled> {
    if (orders.length === 0) return { results: [], earliestDueAt: null, movedUp: 0, lanesToFill: [] }
    const keys = [...new Set(orders.flatMap(({ key }) => key ?? []))]
    const { known, contended } =
      keys.length === 0
        ? { known: new Map<string, KeptLeases>(), contended: new Set<string>() }
        : await lockKeys(tx, keys, waitForTwins)
    const results: (PullResult | undefined)[] = orders.map(() => undefined)
    const servings = new Map<string | number, Serving>()
    const twins: { position: number; key: string }[] = []
    for (const [position, order] of orders.entries()) {
      const { key } = order
      if (key !== null && contended.has(key)) continue
      const leases = key === null ? undefined : known.get(key)
      if (leases !== undefined) {
        results[position] = { partitions: await liveLeases(tx, leases, await tx.now()), repeated: true }
      } else if (key !== null && servings.has(key)) twins.push({ position, key })
      else servings.set(key ?? position, { position, order, portion: new Portion(order), handedOut: [] })
    }
    const served = await this.#serve(tx, [...servings.values()], deltas)
    const given: KeyedLeases[] = []
    for (const { position, order, handedOut } of servings.values()) {
      results[position] = { partitions: handedOut, repeated: false }
      if (order.key !== null && handedOut.length > 0) given.push({ key: order.key, partitions: handedOut })
    }
    if (given.length > 0) rememberKeys(tx, given, await tx.now())
    for (const { position, key } of twins) {
      // Nothing was found for the first of them, so nothing was recorded: its twin may wait as well.
      const handedOut = servings.get(key)?.handedOut ?? []
      const partitions = handedOut.filter(({ lease }) => lease !== null)
      results[position] = { partitions, repeated: handedOut.length > 0 }
    }
    return { results, ...served }
  }

  /** Fills the portions from the front of the order, at most a window's low water at a time. */
  async #serve(
    tx: Transaction,
    servings: readonly Serving[],
    deltas: CountDeltas,
  ): Promise<Omit<Pulled, 'results'>> {
    let earliestDueAt: number | null = null
    let movedUp = 0
    let guess = FIRST_GUESS
    while (true) {
      const hungry = servings.filter(({ portion }) => !portion.isFull)
      if (hungry.length === 0) return { earliestDueAt, movedUp, lanesToFill: [] }
      const { candidates, isEnd } = await claimFor(tx, hungry, guess)
      share(
        candidates,
        hungry.map(({ portion }) => portion),
      )
      const { dueAt, tripped } = await this.#handOut(tx, hungry, deltas)
      earliestDueAt = earlier(earliestDueAt, dueAt)
      const isLast = isEnd || hungry.every(({ portion }) => portion.isFull)
      const filled = await fillAtHand(tx, tripped, deltas)
      movedUp += filled.readied
      const lanesToFill = filled.stillLocked
      // Behind a window that nobody filled the order cannot be told: better fewer partitions than the wrong ones.
      if (isLast || lanesToFill.length > 0) return { earliestDueAt, movedUp, lanesToFill }
      guess *= 4
    }
  }

  async #handOut(
    tx: Transaction,
    hungry: readonly Serving[],
    deltas: CountDeltas,
  ): Promise<{ dueAt: number | null; tripped: readonly number[] }> {
    if (hungry.every(({ portion, handedOut }) => portion.taken.length === handedOut.length))
      return NOTHING_GIVEN
    const now = await tx.now()
    const tableName = await this.#names.loadTables(
      tx,
      hungry.flatMap(({ portion }) => portion.taken),
    )
    const atMostOnce = this.#policy.delivery === 'at-most-once'
    const to = next('ready', atMostOnce ? 'deliver' : 'lease')
    const tripped = new Set<number>()
    const grants: Grant[] = []
    const largest = largestSet(this.#policy)
    for (const { order, portion, handedOut } of hungry) {
      const holder = order.instance === null ? null : this.#names.knownInstance(order.instance)
      for (const candidate of portion.taken.slice(handedOut.length)) {
        const { lane, recordCount } = candidate
        if (candidate.fresh) deltas.advance(lane, candidate.rank, recordCount)
        deltas.move(lane, 'ready', to, recordCount)
        if (candidate.refill) tripped.add(lane.id)
        const grant = {
          id: candidate.id,
          place: candidate.place,
          rank: candidate.rank,
          holder,
          secret: '',
          dueAt: now + leaseMillis(this.#policy, recordCount),
          set: Math.floor(grants.length / largest),
        }
        if (atMostOnce) {
          deltas.finished(lane, recordCount)
          deltas.delivered(lane)
        } else grant.secret = this.#secrets.next()
        grants.push(grant)
        const computeTableName = tableName(candidate.computeTable)
        handedOut.push(asHandedOut(candidate, computeTableName, atMostOnce ? null : grant, now))
      }
    }
    const write = atMostOnce ? writeDeliveries : writeLeases
    write(tx, grants, to, now)
    const dueAt = atMostOnce ? null : Math.min(...grants.map(({ dueAt }) => dueAt))
    return { dueAt, tripped: [...tripped] }
  }
}

function asHandedOut(
  candidate: Candidate,
  computeTableName: string,
  grant: Grant | null,
  now: number,
): HandedOut {
  const { id, term, taskId, lane, idx, spelling, recordCount } = candidate
  return {
    taskId,
    level: lane.level,
    index: idx,
    spelling,
    computeTableName,
    recordCount,
    lease: grant && {
      id: formatLeaseId({ partition: id, term: term + 1, secret: grant.secret }),
      attempt: candidate.attempts + 1,
      expiresAt: grant.dueAt,
      expiresInMillis: grant.dueAt - now,
    },
  }
}

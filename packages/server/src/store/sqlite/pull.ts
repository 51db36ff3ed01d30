import type { DatabaseSync } from 'node:sqlite'
import { Secrets } from '../../handoff/lease-secrets.ts'
import { earlier } from '../../handoff/rules/earlier.ts'
import { advance } from '../../handoff/rules/fair-order.ts'
import { formatLeaseId } from '../../handoff/rules/lease-id.ts'
import { next } from '../../handoff/rules/life-cycle.ts'
import { leaseMillis, type Policy } from '../../handoff/rules/policy.ts'
import { Portion, share } from '../../handoff/rules/sharing.ts'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'
import type { HandedOut, PullOrder, PullResult } from '../../handoff/store.ts'
import type { Books } from './books.ts'
import type { Candidate } from './candidate.ts'
import type { Front, Look } from './front.ts'
import { asHandedOut } from './handed-out.ts'
import { type Lanes, STEP } from './lanes.ts'
import type { Ledger } from './ledger.ts'
import type { Names } from './names.ts'
import type { PartitionEntry } from './partition-entry.ts'
import { RepeatedPulls } from './repeated-pulls.ts'

interface Serving {
  readonly position: number
  readonly order: PullOrder
  readonly portion: Portion<Candidate>
  readonly handedOut: HandedOut[]
}

export interface PulledInAll {
  readonly results: PullResult[]
  /** The earliest expiry among the leases given, for whoever has to watch the time. */
  readonly earliestDueAt: number | null
  /** Partitions that moved up into the windows of their lanes behind those handed out. */
  readonly movedUp: number
  /** Pulls that got nothing because there was too much of closed lanes in the way to see past: they shall look again. */
  readonly undecided: number
}

export class Pull {
  readonly #books: Books
  readonly #ledger: Ledger
  readonly #front: Front
  readonly #lanes: Lanes
  readonly #names: Names
  readonly #policy: Policy
  readonly #secrets = new Secrets()
  readonly #repeated: RepeatedPulls

  constructor(db: DatabaseSync, books: Books, front: Front, lanes: Lanes, names: Names, policy: Policy) {
    this.#books = books
    this.#ledger = books.ledger
    this.#front = front
    this.#lanes = lanes
    this.#names = names
    this.#policy = policy
    this.#repeated = new RepeatedPulls(db, books, names)
  }

  run(orders: readonly PullOrder[], now: number): PulledInAll {
    const results: (PullResult | undefined)[] = []
    const servings: Serving[] = []
    const twins: { position: number; key: string }[] = []
    const keys = new Set<string>()
    for (const [position, order] of orders.entries()) {
      if (order.key !== null && keys.has(order.key)) {
        twins.push({ position, key: order.key })
        continue
      }
      const repeated = order.key === null ? undefined : this.#repeated.repeat(order.key, now)
      if (repeated !== undefined) results[position] = { partitions: repeated, repeated: true }
      else servings.push({ position, order, portion: new Portion(order), handedOut: [] })
      if (order.key !== null) keys.add(order.key)
    }
    const { movedUp, undecided } = this.#serve(servings, now)
    for (const { position, order, handedOut } of servings) {
      if (order.key !== null && handedOut.length > 0) this.#repeated.remember(order.key, handedOut, now)
      results[position] = { partitions: handedOut, repeated: false }
    }
    for (const { position, key } of twins) {
      // Nothing was found for the first of them, so nothing was recorded: its twin may wait as well.
      const repeated = this.#repeated.repeat(key, now)
      results[position] = { partitions: repeated ?? [], repeated: repeated !== undefined }
    }
    return { results: results as PullResult[], earliestDueAt: earliestExpiry(servings), movedUp, undecided }
  }

  /** Fills the portions from the front of the order, as far at a time as all windows reach. */
  #serve(servings: readonly Serving[], now: number): Pick<PulledInAll, 'movedUp' | 'undecided'> {
    let movedUp = 0
    while (true) {
      const hungry = servings.filter(({ portion }) => !portion.isFull)
      const room = hungry.reduce((sum, { portion }) => sum + portion.room, 0)
      if (room === 0) return { movedUp, undecided: 0 }
      const { first, isCutShort } = this.#first(Math.min(room, STEP))
      const candidates = upToAnEmptyWindow(first)
      if (candidates.length > 0) movedUp += this.#share(candidates, hungry, now)
      const undecided = isCutShort ? hungry.filter(({ handedOut }) => handedOut.length === 0).length : 0
      if (isCutShort || candidates.length === 0) return { movedUp, undecided }
    }
  }

  /** Returns how many moved up into the windows of the lanes. */
  #share(candidates: readonly Candidate[], hungry: readonly Serving[], now: number): number {
    const taken = share(
      candidates,
      hungry.map(({ portion }) => portion),
    )
    this.#front.advance(taken)
    const touched = new Set<LaneEntry>()
    for (const serving of hungry) this.#handOut(serving, touched, now)
    let movedUp = 0
    for (const lane of touched) movedUp += this.#lanes.fill(lane)
    return movedUp
  }

  /**
   * The first of open lanes. A lane that closed with more ready partitions than one step takes has them in the way: a
   * pull holds as many as a transaction may, and looks past the others, but not for longer than it may keep everybody
   * waiting.
   */
  #first(limit: number): Look {
    let first = this.#front.first(limit)
    let closed = this.#front.takeClosed()
    while (closed.reduce((held, lane) => held + this.#lanes.hold(lane), 0) > 0) {
      first = this.#front.first(limit)
      closed = this.#front.takeClosed()
    }
    const isObstructed = closed.length > 0 && first.length < limit && !this.#front.isWhole
    return isObstructed ? this.#front.passOver(limit) : { first, isCutShort: false }
  }

  #handOut(serving: Serving, touched: Set<LaneEntry>, now: number): void {
    const { order, portion, handedOut } = serving
    const atMostOnce = this.#policy.delivery === 'at-most-once'
    const to = next('ready', atMostOnce ? 'deliver' : 'lease')
    const holder = order.instance === null ? null : this.#names.instance(order.instance, 'worker', now)
    for (const candidate of portion.taken.slice(handedOut.length)) {
      const { lane, fresh, rank, recordCount } = candidate
      if (fresh) advance(this.#ledger.levelToAdvance(lane.level), rank, recordCount)
      this.#ledger.move(lane, 'ready', to, recordCount)
      touched.add(lane)
      handedOut.push(atMostOnce ? this.#deliver(candidate, holder, now) : this.#lease(candidate, holder, now))
    }
  }

  #lease(candidate: Candidate, holder: number | null, now: number): HandedOut {
    const { id, recordCount, attempts } = candidate
    const length = leaseMillis(this.#policy, recordCount)
    const lease = { partition: id, term: candidate.term + 1, secret: this.#secrets.next() }
    const expiresAt = now + length
    const { term, secret } = lease
    this.#books.deferred.lease(leasedEntry(candidate, secret), [term, secret, holder, expiresAt, now, id])
    return asHandedOut(candidate, this.#names, {
      id: formatLeaseId(lease),
      attempt: attempts + 1,
      expiresAt,
      expiresInMillis: length,
    })
  }

  #deliver(candidate: Candidate, holder: number | null, now: number): HandedOut {
    const { id, lane, recordCount } = candidate
    const { deferred } = this.#books
    // As a lease that is over at once: its way into the window may be put off as well, and comes before.
    const leased = leasedEntry(candidate, NO_SECRET)
    deferred.lease(leased, [leased.term, NO_SECRET, holder, now, now, id])
    const attempts = candidate.attempts + 1
    const delivered = { ...leased, state: next('ready', 'deliver'), outcome: 'delivered' as const, attempts }
    deferred.finish(delivered, [delivered.outcome, attempts, now, null, id])
    this.#ledger.countFinished(lane.task, recordCount)
    lane.task.delivered += 1
    return asHandedOut(candidate, this.#names, null)
  }
}

function earliestExpiry(servings: readonly Serving[]): number | null {
  let earliest: number | null = null
  for (const { handedOut } of servings)
    for (const { lease } of handedOut) earliest = earlier(earliest, lease === null ? null : lease.expiresAt)
  return earliest
}

/**
 * Behind the last ready partition of a lane the next one to come may be a held partition of the same lane, which has no
 * rank yet. The claim pauses one before it, and the window is filled: a level that has work never looks drained.
 */
function upToAnEmptyWindow(candidates: readonly Candidate[]): readonly Candidate[] {
  const left = new Map<LaneEntry, number>()
  const last = candidates.findIndex(({ lane }) => {
    if (lane.partitions.held === 0) return false
    const ready = (left.get(lane) ?? lane.partitions.ready) - 1
    left.set(lane, ready)
    return ready === 1
  })
  return last === -1 ? candidates : candidates.slice(0, last + 1)
}

/** Of what is handed out without a lease: no lease id has it. */
const NO_SECRET = ''

function leasedEntry(candidate: Candidate, secret: string): PartitionEntry {
  const { id, lane, recordCount, attempts, releases, term } = candidate
  return {
    id,
    lane,
    recordCount,
    state: 'leased',
    term: term + 1,
    secret,
    outcome: null,
    attempts,
    releasesInARow: releases,
    taskCancelled: false,
  }
}

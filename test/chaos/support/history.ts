import type { Outcome, PulledPartition, RefusalCode, RenewAnswer, SettleAnswer } from '@baton/protocol'
import { parseLeaseId } from '../../../packages/server/src/handoff/lease-id.ts'
import type { Exchange } from './checked-client.ts'
import type { ProducedTask } from './produced-task.ts'

/** A pull, or the pull part of a settle, as requested: once, or several times with one key. */
export interface AskedPull {
  readonly batch: number
  /** The record budget. */
  readonly records: number | null
  readonly key: string | null
  /** When it was first sent: none of its leases was taken before. */
  readonly sentAt: number
}

/** A period in which a lease is valid, unless it is settled, and the answer that stated it. */
export interface Run {
  readonly from: number
  readonly until: number
  readonly said: Exchange
}

export interface SeenSettlement extends Exchange {
  readonly outcome: Outcome
  readonly refusal: RefusalCode | null
}

export interface SeenRenewal extends Exchange {
  readonly refusal: RefusalCode | null
}

/** A lease that reached a worker, and all answers about it. */
export interface SeenLease {
  readonly id: string
  readonly partition: PulledPartition
  /**
   * Counts the leases of a partition. An undone lease keeps its number, so no two leases seen from one store
   * have the same.
   */
  readonly leaseNumber: number
  /** The pull that returned it. */
  readonly asked: AskedPull
  /** When the claim began. It may have taken the partition later, but not after `receivedAt`. */
  readonly claimedAt: number
  receivedAt: number
  readonly runs: Run[]
  readonly settlements: SeenSettlement[]
  readonly renewals: SeenRenewal[]
  /** When each outcome was first sent: from then on it may have taken effect. */
  readonly sentAt: Partial<Record<Outcome, number>>
}

/** An answer to a pull, or to the pull part of a settle. */
export interface SeenPull extends Exchange {
  readonly asked: AskedPull
  readonly leases: readonly SeenLease[]
  readonly partitions: readonly PulledPartition[]
}

/** All answers, as the clients saw them. Checked when the run is over. */
export class History {
  readonly leaseMillis: number
  readonly tasks = new Map<string, ProducedTask>()
  readonly leases = new Map<string, SeenLease>()
  readonly pulls: SeenPull[] = []
  /** Leases that were accepted as done. */
  done = 0

  constructor(leaseMillis: number) {
    this.leaseMillis = leaseMillis
  }

  /** Partitions that were accepted and are not finished yet, as far as clients know. */
  get waiting(): number {
    const open = [...this.tasks.values()].filter(({ cancelSentAt }) => cancelSentAt === undefined)
    return open.reduce((sum, { accepted, done }) => sum + accepted.size - done, 0)
  }

  /** Returns the leases of the answer, and those of them that no earlier answer had. */
  pulled(partitions: readonly PulledPartition[], exchange: Exchange, asked: AskedPull) {
    const known = new Set(partitions.map(({ lease }) => this.leases.get(lease?.id ?? '')))
    const leases = partitions.map((partition) => this.#received(partition, exchange, asked))
    this.pulls.push({ ...exchange, asked, leases, partitions })
    return { leases, fresh: leases.filter((lease) => !known.has(lease)) }
  }

  settling(leases: readonly SeenLease[], outcome: Outcome): void {
    for (const lease of leases) lease.sentAt[outcome] ??= Date.now()
  }

  settled(leases: readonly SeenLease[], outcome: Outcome, answer: SettleAnswer, exchange: Exchange): void {
    const refusals = new Map(answer.refused.map(({ leaseId, code }) => [leaseId, code]))
    const accepted = new Set(answer.settled)
    for (const lease of leases) {
      const refusal = refusals.get(lease.id) ?? null
      if (accepted.has(lease.id) === (refusal !== null))
        throw new Error(`a settle says nothing about ${lease.id}, or both`)
      if (outcome === 'done' && refusal === null && doneAt(lease) === undefined) this.#done(lease)
      lease.settlements.push({ ...exchange, outcome, refusal })
    }
  }

  renewed(answer: RenewAnswer, exchange: Exchange): void {
    for (const { leaseId, expiresAt } of answer.renewed) {
      const lease = this.leases.get(leaseId)
      lease?.renewals.push({ ...exchange, refusal: null })
      lease?.runs.push(this.#runUntil(expiresAt, exchange))
    }
    for (const { leaseId, code } of answer.refused)
      this.leases.get(leaseId)?.renewals.push({ ...exchange, refusal: code })
  }

  #done({ partition }: SeenLease): void {
    this.done += 1
    const task = this.tasks.get(partition.taskId)
    if (task !== undefined) task.done += 1
  }

  #received(partition: PulledPartition, exchange: Exchange, asked: AskedPull): SeenLease {
    const { id, expiresAt } = partition.lease ?? { id: '', expiresAt: '' }
    const run = this.#runUntil(expiresAt, exchange)
    const known = this.leases.get(id)
    if (known !== undefined) {
      known.receivedAt = Math.min(known.receivedAt, exchange.receivedAt)
      known.runs.push(run)
      return known
    }
    const leaseNumber = parseLeaseId(id)?.leaseNumber
    if (leaseNumber === undefined) throw new Error(`${partition.partition_name} was given without a lease`)
    const lease: SeenLease = {
      ...{ id, partition, leaseNumber, asked, claimedAt: run.from, receivedAt: exchange.receivedAt },
      ...{ runs: [run], settlements: [], renewals: [], sentAt: {} },
    }
    this.leases.set(id, lease)
    return lease
  }

  #runUntil(expiresAt: string, said: Exchange): Run {
    const until = Date.parse(expiresAt)
    return { from: until - this.leaseMillis, until, said }
  }
}

export function isAccepted({ refusal }: { readonly refusal: RefusalCode | null }): boolean {
  return refusal === null
}

/** When the holder received the confirmation that the partition is done under this lease. */
export function doneAt(lease: SeenLease): number | undefined {
  const accepted = lease.settlements.filter(
    (settlement) => settlement.outcome === 'done' && isAccepted(settlement),
  )
  return accepted.length === 0 ? undefined : Math.min(...accepted.map(({ receivedAt }) => receivedAt))
}

/** From when on its holder no longer relies on it. */
export function givenUpAt(lease: SeenLease): number {
  return Math.min(...Object.values(lease.sentAt), Number.POSITIVE_INFINITY)
}

/** The leases that were seen for each partition, ordered by number. */
export function leasesByPartition({ leases }: History): Map<string, SeenLease[]> {
  const byPartition = Map.groupBy(leases.values(), ({ partition }) => partition.partition_name)
  for (const ofOne of byPartition.values()) ofOne.sort((a, b) => a.leaseNumber - b.leaseNumber)
  return byPartition
}

/** What happened to a lease, as text for debugging. */
export function story(lease: SeenLease): string {
  const lines = [
    { at: lease.asked.sentAt, text: `asked for ${lease.asked.sentAt}` },
    ...lease.runs.map(({ from, until }) => ({ at: from, text: `runs ${from} until ${until}` })),
    { at: lease.receivedAt, text: `received ${lease.receivedAt}` },
    ...lease.settlements.map(({ outcome, refusal, sentAt, receivedAt, node }) => ({
      at: sentAt,
      text: `${outcome} ${sentAt} to ${receivedAt} by ${node}: ${refusal ?? 'settled'}`,
    })),
    ...lease.renewals.map(({ refusal, sentAt, receivedAt, node }) => ({
      at: sentAt,
      text: `renew ${sentAt} to ${receivedAt} by ${node}: ${refusal ?? 'renewed'}`,
    })),
  ]
  const told = lines.toSorted((a, b) => a.at - b.at).map(({ text }) => text)
  return `${lease.partition.partition_name} under ${lease.id} (key ${lease.asked.key}): ${told.join('; ')}`
}

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from '../../chaos/support/chance.ts'
import type { ClientLedger, Held, Outcome } from './ledger.ts'
import type { MortalService } from './service.ts'

interface PulledPartition {
  readonly partition_name: string
  readonly lease: { readonly id: string }
}

interface Pulled {
  readonly partitions: readonly PulledPartition[]
}

interface Settled extends Pulled {
  readonly settled: readonly string[]
  readonly refused: readonly { readonly leaseId: string; readonly code: string }[]
}

export interface Stage {
  readonly service: MortalService
  readonly ledger: ClientLedger
  readonly chance: Chance
  /** While set, tasks still grow, and workers fail or release some of their partitions. */
  isUnderFire: boolean
}

const BACKLOG = 300

const json = { 'content-type': 'application/json' }
const heldOf = ({ partition_name, lease }: PulledPartition): Held => ({
  name: partition_name,
  leaseId: lease.id,
})

/** Calls one task back, array by array, and sends each until it is acknowledged. */
export async function produce(stage: Stage, taskId: string): Promise<void> {
  const { service, ledger } = stage
  const chance = stage.chance.for(taskId)
  let next = 0
  while (stage.isUnderFire) {
    // A larger backlog would test nothing more and would have to be finished in the end.
    if (ledger.unfinished > BACKLOG) {
      await sleep(5)
      continue
    }
    const descriptors = Array.from({ length: chance.between(1, 12) }, () => {
      next += 1
      const [level, index] = [next % 3, next]
      return {
        taskId,
        computeTableName: 'results.orders',
        partition_name: `${taskId}-${level}-${index}`,
        record_count: index % 50,
        priorityLevel: level,
      }
    }).toSorted((a, b) => a.priorityLevel - b.priorityLevel)
    const names = descriptors.map(({ partition_name }) => partition_name)
    ledger.callingBack(names)
    let unanswered = 0
    const request = { method: 'POST', headers: json, body: JSON.stringify(descriptors) }
    const { accepted, duplicates } = await service.insist<{ accepted: number; duplicates: number }>(
      '/call-back',
      request,
      () => {
        unanswered += 1
      },
    )
    // All or nothing: the whole array is new, or all of it is known from an attempt without an answer.
    const isWhole = unanswered === 0 ? duplicates === 0 : accepted === 0 || duplicates === 0
    if (accepted + duplicates !== names.length || !isWhole)
      ledger.violations.push(
        `an array of ${names.length} was answered ${accepted} accepted, ${duplicates} known`,
      )
    ledger.calledBack(names)
    ledger.answers += 1
  }
}

/** Pulls and settles until it is stopped. */
export async function work(stage: Stage, name: string, isOver: () => boolean): Promise<void> {
  const chance = stage.chance.for(name)
  let held: Held[] = []
  while (!isOver() || held.length > 0) {
    if (held.length === 0) held = await pull(stage, chance)
    else held = await settle(stage, chance, held, isOver())
    stage.ledger.answers += 1
  }
}

async function pull(stage: Stage, chance: Chance): Promise<Held[]> {
  const { service, ledger } = stage
  const batch = chance.between(1, 5)
  // Without a key, a lost answer cannot be repeated: its partitions stay leased without a holder.
  const key = chance.happens(0.7) || !stage.isUnderFire ? { 'idempotency-key': randomUUID() } : undefined
  const headers = { prefer: `batch=${batch}`, 'x-instance-id': 'worker', ...key }
  const { partitions } = await service.insist<Pulled>('/pull', { headers }, () => {
    if (key === undefined) ledger.lostLeases += batch
  })
  const held = partitions.map(heldOf)
  for (const each of held) ledger.received(each)
  if (key !== undefined && held.length > 0 && chance.happens(0.1)) {
    const again = await service.insist<Pulled>('/pull', { headers })
    ledger.repeated(held, again.partitions.map(heldOf))
  }
  return held
}

/** Settles everything in one request, half of the time with the next pull in the same request. */
async function settle(stage: Stage, chance: Chance, held: readonly Held[], isLast: boolean): Promise<Held[]> {
  const { service, ledger } = stage
  const outcomes = held.map((): Outcome => {
    const draw = stage.isUnderFire ? chance.below(100) : 100
    return draw < 10 ? 'failed' : draw < 25 ? 'released' : 'done'
  })
  const body = held.map(({ leaseId }, at) => ({ leaseId, outcome: outcomes[at], retryAfterSeconds: 0 }))
  for (const [at, each] of held.entries()) ledger.settling(each, outcomes[at] ?? 'done')
  const pulls = !isLast && chance.happens(0.5)
  const headers = { ...json, ...(pulls ? { prefer: 'batch=3', 'idempotency-key': randomUUID() } : {}) }
  let unanswered = 0
  const request = { method: 'POST', headers, body: JSON.stringify(body) }
  const { refused, partitions } = await service.insist<Settled>('/settle', request, () => {
    unanswered += 1
  })
  const refusals = new Map(refused.map(({ leaseId, code }) => [leaseId, code]))
  for (const [at, each] of held.entries())
    ledger.settled(each, outcomes[at] ?? 'done', refusals.get(each.leaseId), unanswered > 0)
  const next = partitions.map(heldOf)
  for (const each of next) ledger.received(each)
  return next
}

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome, PulledPartition } from '@baton/protocol'
import type { Chance } from '../support/chance.ts'
import type { CheckedClient } from '../support/checked-client.ts'
import { requestKinds } from '../support/request-kinds.ts'
import type { Findings } from '../support/scene.ts'
import type { Plan, Table } from './plan.ts'

/** What the workers of one table share. */
export interface WorkerFleet {
  readonly table: Table
  readonly client: CheckedClient
  readonly plan: Plan
  readonly findings: Findings
  /** Its workers do not pull, and neither renew nor settle what they hold. */
  isAway: boolean
  isOver: boolean
  /** Workers that wait for an answer, or have not checked `isAway` yet. */
  atWork: number
  handedOut: number
  /** Partitions of another table, or task, than the pull named. */
  wrong: number
}

/** What a worker does with a partition, in percent. */
const FATES = [
  { fate: 'failed', below: 2 },
  { fate: 'released', below: 4 },
  { fate: 'forgotten', below: 5 },
  { fate: 'done', below: 100 },
] as const

interface Terms {
  readonly query: string
  readonly headers: Record<string, string>
  readonly task: string | null
}

/** Pulls partitions of its table, at times of one task, and settles them until the run is over. */
export async function workOn(fleet: WorkerFleet, name: string, chance: Chance, batch: number): Promise<void> {
  const worker = new TableWorker(fleet, name, chance, batch)
  while (!fleet.isOver)
    if (fleet.isAway) {
      worker.drop()
      await sleep(20)
    } else {
      fleet.atWork += 1
      await worker.turn()
      fleet.atWork -= 1
    }
}

class TableWorker {
  readonly #fleet: WorkerFleet
  readonly #name: string
  readonly #chance: Chance
  readonly #batch: number
  #held: readonly PulledPartition[] = []

  constructor(fleet: WorkerFleet, name: string, chance: Chance, batch: number) {
    this.#fleet = fleet
    this.#name = name
    this.#chance = chance
    this.#batch = batch
  }

  async turn(): Promise<void> {
    if (this.#held.length === 0) this.#held = await this.#pull()
    const held = this.#held
    this.#held = []
    if (held.length > 0 && !this.#fleet.isAway) await this.#settle(held)
  }

  drop(): void {
    this.#held = []
  }

  async #pull(): Promise<readonly PulledPartition[]> {
    const { client } = this.#fleet
    const terms = this.#terms()
    const request = { path: `/pull?${terms.query}&wait=1`, headers: terms.headers }
    const { body } = await client.sendUntilAccepted(requestKinds.pull, request, this.#chance)
    return this.#received(body.partitions, terms)
  }

  async #settle(held: readonly PulledPartition[]): Promise<void> {
    const { client, plan, findings } = this.#fleet
    const chance = this.#chance
    const body: { leaseId: string; outcome: Outcome }[] = []
    const names = new Map<string, string>()
    for (const { lease, partition_name } of held) {
      const drawn = chance.below(100)
      const { fate } = FATES.find(({ below }) => drawn < below) ?? { fate: 'done' }
      if (fate === 'forgotten' || lease === null) continue
      body.push({ leaseId: lease.id, outcome: fate })
      if (fate === 'done') names.set(lease.id, partition_name)
    }
    if (body.length === 0) return
    const terms = chance.happens(0.5) ? this.#terms() : null
    const path = terms === null ? '/settle' : `/settle?${terms.query}`
    const headers = terms?.headers ?? { 'x-instance-id': this.#name }
    const answer = await client.sendUntilAccepted(requestKinds.settle, { path, headers, body }, chance)
    for (const id of answer.body.settled) {
      const name = names.get(id)
      if (name !== undefined && !plan.markDone(name))
        findings.add(`${name} was accepted as done twice, the second time under ${id}`)
    }
    if (terms !== null) this.#held = this.#received(answer.body.partitions ?? [], terms)
  }

  #terms(): Terms {
    const chance = this.#chance
    const { table, plan } = this.#fleet
    const task = chance.happens(0.1) ? chance.pick(plan.tasks) : null
    const query = new URLSearchParams({ table, batch: String(chance.between(1, this.#batch)) })
    if (task !== null) query.append('task', task)
    // Without a key, the leases of a lost answer have to expire.
    const key = chance.happens(0.8) ? { 'idempotency-key': randomUUID() } : {}
    return { query: String(query), headers: { 'x-instance-id': this.#name, ...key }, task }
  }

  #received(partitions: readonly PulledPartition[], { task }: Terms): readonly PulledPartition[] {
    const fleet = this.#fleet
    fleet.handedOut += partitions.length
    for (const { partition_name: name, computeTableName, taskId } of partitions) {
      const isRight =
        computeTableName === fleet.table &&
        fleet.plan.tableOf(name) === fleet.table &&
        (task === null || task === taskId)
      if (isRight) continue
      fleet.wrong += 1
      fleet.findings.add(
        `${name} of ${computeTableName} was handed to a pull of ${fleet.table}${task === null ? '' : ` and ${task}`}`,
      )
    }
    return partitions
  }
}

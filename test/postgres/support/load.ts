import { setTimeout as sleep } from 'node:timers/promises'
import { parseLeaseId } from '../../../packages/server/src/handoff/lease-id.ts'
import { Chance, seed } from '../../chaos/support/chance.ts'

interface Pulled {
  readonly partition_name: string
  readonly lease: { readonly id: string; readonly expiresAt: string }
}

interface Granted {
  readonly name: string
  readonly leaseNumber: number
  readonly from: number
  readonly until: number
}

export interface LoadOptions {
  /** The addresses of the nodes; more may be added later. */
  readonly urls: readonly string[]
  readonly taskId: string
  readonly arrays: number
  readonly arrayLength: number
  readonly workers: number
  readonly leaseMillis: number
  /** How long a worker takes for what it pulled. */
  readonly workMillis: number
}

/** A request without an answer is sent again after this time. */
const ANSWER_MILLIS = 8000

/**
 * Producers and workers that retry every request, on any node, until it is answered. Records every answer, so
 * that afterwards it can be checked against the guarantees.
 */
export class Load {
  readonly #options: LoadOptions
  readonly #chance = new Chance(seed)
  readonly #granted: Granted[] = []
  /** Leases that were acknowledged as done, by partition. */
  readonly #done = new Map<string, Set<string>>()
  readonly #released = new Set<string>()
  #acknowledged = 0
  #stopped = false
  requests = 0
  failures = 0

  constructor(options: LoadOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#options.arrays * this.#options.arrayLength
  }

  get doneCount(): number {
    return this.#done.size
  }

  /** Ends when all partitions are acknowledged as done. */
  async run(): Promise<void> {
    const { workers } = this.#options
    const producing = this.#produce()
    await Promise.all([
      producing,
      ...Array.from({ length: workers }, (_, number) => this.#work(`worker-${number}`)),
    ])
  }

  stop(): void {
    this.#stopped = true
  }

  /** Waits until this share is done; what happens in between is random. */
  async reached(share: number): Promise<void> {
    while (this.doneCount < this.size * share) await sleep(20)
  }

  /** The violations of what was acknowledged. */
  findings(): string[] {
    const findings: string[] = []
    if (this.#acknowledged !== this.size)
      findings.push(`${this.#acknowledged} of ${this.size} partitions were acknowledged as accepted`)
    for (const [name, leases] of this.#done)
      if (leases.size > 1) findings.push(`${name} was settled by ${leases.size} leases`)
    for (const [name, leases] of Map.groupBy(this.#granted, (granted) => granted.name)) {
      const inOrder = leases.toSorted((a, b) => a.leaseNumber - b.leaseNumber)
      for (const [at, lease] of inOrder.entries()) {
        const before = inOrder[at - 1]
        if (before === undefined) continue
        const wasGivenBack = this.#released.has(`${name} ${before.leaseNumber}`)
        if (lease.leaseNumber === before.leaseNumber)
          findings.push(`${name} was leased twice with number ${lease.leaseNumber}`)
        else if (lease.from < before.until && !wasGivenBack)
          findings.push(`${name} had two live leases for ${before.until - lease.from} ms`)
      }
    }
    return findings
  }

  async #produce(): Promise<void> {
    const { taskId, arrays, arrayLength } = this.#options
    const chance = this.#chance.for(taskId)
    for (let array = 0; array < arrays; array += 1) {
      const descriptors = Array.from({ length: arrayLength }, (_, at) => ({
        taskId,
        computeTableName: 'results.orders',
        partition_name: `${taskId}-0-${array * arrayLength + at}`,
        record_count: 100,
        priorityLevel: 0,
      }))
      const answer = await this.#ask(chance, 'POST', '/call-back', descriptors)
      this.#acknowledged += (answer['accepted'] as number) + (answer['duplicates'] as number)
    }
  }

  async #work(name: string): Promise<void> {
    const headers = { 'x-instance-id': name, prefer: 'batch=5, wait=1' }
    const chance = this.#chance.for(name)
    while (this.#done.size < this.size && !this.#stopped) {
      const { partitions } = (await this.#ask(chance, 'GET', '/pull', undefined, headers)) as unknown as {
        partitions: Pulled[]
      }
      for (const { partition_name, lease } of partitions) this.#note(partition_name, lease)
      if (partitions.length === 0) continue
      await sleep(chance.below(this.#options.workMillis))
      const settlements = partitions.map(({ lease }, at) => ({
        leaseId: lease.id,
        outcome: at === 0 && chance.happens(0.05) ? 'released' : 'done',
      }))
      for (const [at, { outcome }] of settlements.entries()) {
        const leaseNumber = parseLeaseId(partitions[at]?.lease.id ?? '')?.leaseNumber
        // Recorded before it is sent: even without an answer, the lease may have been released.
        if (outcome === 'released') this.#released.add(`${partitions[at]?.partition_name} ${leaseNumber}`)
      }
      const { settled } = (await this.#ask(chance, 'POST', '/settle', settlements)) as unknown as {
        settled: string[]
      }
      for (const [at, { leaseId, outcome }] of settlements.entries()) {
        if (outcome !== 'done' || !settled.includes(leaseId)) continue
        const partition = partitions[at]?.partition_name ?? ''
        const leases = this.#done.get(partition) ?? new Set()
        this.#done.set(partition, leases.add(leaseId))
      }
    }
  }

  #note(name: string, { id, expiresAt }: Pulled['lease']): void {
    const until = Date.parse(expiresAt)
    const leaseNumber = parseLeaseId(id)?.leaseNumber ?? 0
    this.#granted.push({ name, leaseNumber, from: until - this.#options.leaseMillis, until })
  }

  async #ask(
    chance: Chance,
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Record<string, unknown>> {
    const { urls } = this.#options
    while (true) {
      const url = chance.pick(urls)
      this.requests += 1
      try {
        const response = await fetch(`${url}${path}`, {
          method,
          headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(ANSWER_MILLIS),
        })
        const answer = (await response.json()) as Record<string, unknown>
        if (response.ok) return answer
        if (response.status < 500) throw new Error(`${path} was answered ${JSON.stringify(answer)}`)
      } catch (error) {
        if (error instanceof Error && error.message.includes('was answered')) throw error
      }
      this.failures += 1
      await sleep(50)
    }
  }
}

import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../../chaos/support/chance.ts'

interface Pulled {
  readonly partitions: readonly { readonly partition_name: string; readonly lease: { readonly id: string } }[]
}

/** The answers to honest clients, and the errors in them. */
export class Ledger {
  readonly calledBack = new Set<string>()
  readonly done = new Set<string>()
  readonly findings: string[] = []
  /** Answers that request a retry, by status, and requests without an answer. */
  readonly refused: Record<string, number> = {}
  requests = 0

  /** Partitions that were called back and are not done. */
  get open(): number {
    return this.calledBack.size - this.done.size
  }

  refusal(kind: string): void {
    this.refused[kind] = (this.refused[kind] ?? 0) + 1
  }
}

const MOST_OPEN = 5000

/** Producers and workers that follow the protocol: they retry temporarily refused requests. */
export class Honest {
  readonly #url: string
  readonly #ledger: Ledger
  #producing = true
  #working = true

  constructor(url: string, ledger: Ledger) {
    this.#url = url
    this.#ledger = ledger
  }

  stopProducing(): void {
    this.#producing = false
  }

  stopWorking(): void {
    this.#working = false
  }

  async produce(name: string, chance: Chance): Promise<void> {
    for (let task = 0; this.#producing; task += 1) {
      const taskId = `${name}-${task}`
      const count = chance.happens(0.1) ? chance.between(2500, 4000) : chance.between(5, 60)
      const names = Array.from({ length: count }, (_, index) => `${taskId}-${index % 3}-${index}`)
      const array = names
        .map((partition_name, index) => ({ partition_name, priorityLevel: index % 3 }))
        .toSorted((a, b) => a.priorityLevel - b.priorityLevel)
        .map((each) => ({ taskId, computeTableName: 'honest.table', record_count: 1, ...each }))
      const headers = { 'content-type': 'application/json', 'x-instance-id': name }
      const answer = await this.#insist<{ accepted: number; duplicates: number }>('/call-back', {
        method: 'POST',
        headers,
        body: JSON.stringify(array),
      })
      if (answer.accepted + answer.duplicates !== count)
        this.#ledger.findings.push(`${taskId}: ${JSON.stringify(answer)} for ${count} partitions`)
      for (const each of names) this.#ledger.calledBack.add(each)
      await pause(chance.between(1, 100))
      // The siege has to end, however little the floods leave to the workers.
      while (this.#producing && this.#ledger.open > MOST_OPEN) await pause(50)
    }
  }

  async work(name: string): Promise<void> {
    while (this.#working) {
      const headers = { 'x-instance-id': name, prefer: 'wait=1, batch=50', 'idempotency-key': randomUUID() }
      const { partitions } = await this.#insist<Pulled>('/pull', { headers })
      if (partitions.length > 0) await this.#settle(name, partitions)
    }
  }

  async #settle(name: string, partitions: Pulled['partitions']): Promise<void> {
    const byLease = new Map(partitions.map(({ lease, partition_name }) => [lease.id, partition_name]))
    const body = JSON.stringify([...byLease.keys()].map((leaseId) => ({ leaseId, outcome: 'done' })))
    const headers = { 'content-type': 'application/json', 'x-instance-id': name }
    const answer = await this.#insist<{ settled: string[]; refused: { leaseId: string; code: string }[] }>(
      '/settle',
      { method: 'POST', headers, body },
    )
    for (const leaseId of answer.settled) {
      const partition = byLease.get(leaseId)
      if (partition === undefined) this.#ledger.findings.push(`${name} settled ${leaseId}, which it had not`)
      else if (this.#ledger.done.has(partition)) this.#ledger.findings.push(`${partition} was done twice`)
      else this.#ledger.done.add(partition)
    }
    // With short leases, a lease may end before it is settled; no other refusal is allowed.
    for (const { code } of answer.refused)
      if (code !== 'lease_lost') this.#ledger.findings.push(`${name} was refused a settlement: ${code}`)
  }

  /** Sends it until it is answered with 200. Only answers that allow a retry are retried. */
  async #insist<Answer>(path: string, options: RequestInit): Promise<Answer> {
    for (;;) {
      this.#ledger.requests += 1
      try {
        const answer = await fetch(this.#url + path, options)
        const text = await answer.text()
        if (answer.status === 200) return JSON.parse(text) as Answer
        if (answer.status !== 503 && answer.status !== 429)
          this.#ledger.findings.push(`${path} was answered ${answer.status}: ${text}`)
        else if (answer.headers.get('retry-after') === null)
          this.#ledger.findings.push(`${path} was answered ${answer.status} without Retry-After`)
        this.#ledger.refusal(`${answer.status} ${path}`)
      } catch {
        this.#ledger.refusal(`no answer ${path}`)
      }
      await pause(50)
    }
  }
}

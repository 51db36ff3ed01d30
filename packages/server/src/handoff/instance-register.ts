import type { Clock } from './clock.ts'
import { type InstanceRecord, noTotals } from './instances.ts'
import type { MentionsOutcome } from './mentions.ts'
import { SIGHTING_INTERVAL_MILLIS, Sightings } from './sightings.ts'
import type { PullResult, Store } from './store.ts'
import { addCapped } from './tally.ts'

export interface Node {
  readonly instanceId: string
  readonly version: string
}

/** Who is here: this node, which tells the store so every few seconds, and the clients that it saw meanwhile. */
export class InstanceRegister {
  readonly #store: Store
  readonly #node: Node & { readonly startedAt: number }
  readonly #failed: (error: unknown) => void
  readonly #sightings: Sightings
  #heartbeat: NodeJS.Timeout | undefined
  #draining = false

  constructor(store: Store, node: Node, failed: (error: unknown) => void, clock: Clock) {
    this.#store = store
    this.#sightings = new Sightings(clock)
    this.#node = { ...node, startedAt: Date.now() }
    this.#failed = failed
  }

  async start(): Promise<void> {
    await this.#beat()
    this.#heartbeat = setInterval(() => void this.#beat(), SIGHTING_INTERVAL_MILLIS)
  }

  drain(): void {
    this.#draining = true
    void this.#beat()
  }

  async stop(): Promise<void> {
    clearInterval(this.#heartbeat)
    await this.#beat()
  }

  /** `calledBack` is null for a call-back that was refused: its sender was here, and did nothing. */
  noteCallBack(instanceId: string | null, calledBack: number | null): void {
    if (instanceId === null) return
    const totals = this.#sightings.totalsOf(instanceId, 'producer')
    if (calledBack === null) return
    totals.callBacks += 1
    totals.calledBack += calledBack
  }

  notePull(instanceId: string | null, { partitions, repeated }: PullResult): void {
    if (instanceId === null) return
    const totals = this.#sightings.totalsOf(instanceId, 'worker')
    totals.pulls += 1
    if (repeated) return
    totals.partitions += partitions.length
    for (const { recordCount } of partitions) totals.records = addCapped(totals.records, recordCount)
  }

  noteSettle(instanceId: string | null, { done, failed, released }: MentionsOutcome['totals']): void {
    if (instanceId === null) return
    const totals = this.#sightings.totalsOf(instanceId, 'worker')
    totals.done += done
    totals.failed += failed
    totals.released += released
  }

  noteRenewal(instanceId: string | null): void {
    if (instanceId !== null) this.#sightings.totalsOf(instanceId, 'worker')
  }

  /** `null` asks for the node that answers. */
  async instance(instanceId: string | null): Promise<InstanceRecord | null> {
    const id = instanceId ?? this.#node.instanceId
    const stored = await this.#store.instance(id)
    return this.#sightings.merge(id, stored, stored?.now ?? Date.now())
  }

  async instances(query: { after: string | null; limit: number }): Promise<InstanceRecord[]> {
    await this.#beat()
    return this.#store.instances(query)
  }

  async #beat(): Promise<void> {
    const { instanceId, version, startedAt } = this.#node
    const { sightings, restore } = this.#sightings.take()
    const node = { version, startedAt, draining: this.#draining }
    const seenMillisAgo = { first: 0, last: 0 }
    const self = { instanceId, role: 'service' as const, totals: noTotals(), seenMillisAgo, node }
    try {
      await this.#store.recordSightings([...sightings, self])
    } catch (error) {
      restore()
      this.#failed(error)
    }
  }
}

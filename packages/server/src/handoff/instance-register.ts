import type { Stopwatch, WallClock } from './clock.ts'
import { HEARTBEAT_INTERVAL_MILLIS, Heartbeats } from './heartbeats.ts'
import type { Store } from './store.ts'
import { type InstancePage, type InstanceQuery, type InstanceRecord, noTotals } from './views/records.ts'

export interface Node {
  readonly instanceId: string
  readonly version: string
}

/** A node that runs has written its heartbeat once between any two of another; a second look forgives one that was late. */
const LOOKS_FOR_A_NAMESAKE = 2

export interface InstanceEvents {
  failed(error: unknown): void
  /** Another node runs under the same name, and the two are shown as one. */
  hasNamesake(): void
}

/** Who is here: this node, which tells the store so every few seconds, and the clients that it saw meanwhile. */
export class InstanceRegister {
  readonly #store: Store
  readonly #node: Node & { readonly startedAt: number }
  readonly #events: InstanceEvents
  readonly #clock: WallClock
  readonly #heartbeats: Heartbeats
  #heartbeat: NodeJS.Timeout | undefined
  #draining = false
  #beats = 0
  #lastBeat: Promise<void> | undefined
  #nextBeat: Promise<void> | undefined
  #looksLeft = LOOKS_FOR_A_NAMESAKE

  constructor(store: Store, node: Node, events: InstanceEvents, clock: WallClock, stopwatch: Stopwatch) {
    this.#store = store
    this.#heartbeats = new Heartbeats(stopwatch)
    this.#node = { ...node, startedAt: clock() }
    this.#clock = clock
    this.#events = events
  }

  async start(): Promise<void> {
    await this.#beat()
    this.#heartbeat = setInterval(() => void this.#beatAgain(), HEARTBEAT_INTERVAL_MILLIS)
  }

  drain(): void {
    this.#draining = true
    void this.#beat()
  }

  async stop(): Promise<void> {
    clearInterval(this.#heartbeat)
    await this.#beat()
  }

  /** What it brought and took the store counts together with that; here is only when it was seen. */
  noteSeen(instanceId: string | null, role: 'producer' | 'worker'): void {
    if (instanceId !== null) this.#heartbeats.totalsOf(instanceId, role)
  }

  /** Pulls are counted here: those that find nothing leave no trace in the store. */
  notePull(instanceId: string | null): void {
    if (instanceId !== null) this.#heartbeats.totalsOf(instanceId, 'worker').pulls += 1
  }

  /** `null` asks for the node that answers. */
  async instance(instanceId: string | null): Promise<InstanceRecord | null> {
    const id = instanceId ?? this.#node.instanceId
    const isBeating = this.#lastBeat !== undefined
    const beats = this.#beats
    const record = await this.#recordOf(id)
    if (!isBeating && beats === this.#beats) return record
    // What a heartbeat had on its way was neither here nor there. After a further one it is there.
    await this.#beat()
    return this.#recordOf(id)
  }

  async instances(query: InstanceQuery): Promise<InstancePage> {
    await this.#beat()
    return this.#store.instances(query)
  }

  async #recordOf(id: string): Promise<InstanceRecord | null> {
    const stored = await this.#store.instance(id)
    return this.#heartbeats.merge(id, stored, stored?.now ?? this.#clock())
  }

  async #beatAgain(): Promise<void> {
    if (this.#looksLeft > 0) await this.#lookForNamesake()
    await this.#beat()
  }

  /** Not at the start: what is found there may be of this node's own last life, which ended a moment ago. */
  async #lookForNamesake(): Promise<void> {
    this.#looksLeft -= 1
    try {
      const { node } = (await this.#store.instance(this.#node.instanceId)) ?? { node: null }
      if (node === null || node.draining || node.startedAt === this.#node.startedAt) return
      this.#looksLeft = 0
      this.#events.hasNamesake()
    } catch (error) {
      this.#events.failed(error)
    }
  }

  /**
   * Writes all that was seen before. One after the other, so that what an earlier one has on its way is written, too. Who
   * comes while one waits for its turn shares it: they do not pile up in front of a store that is away.
   */
  #beat(): Promise<void> {
    this.#nextBeat ??= this.#beatAfter(this.#lastBeat)
    return this.#nextBeat
  }

  async #beatAfter(last: Promise<void> | undefined): Promise<void> {
    await last
    this.#nextBeat = undefined
    this.#beats += 1
    this.#lastBeat = this.#writeDown()
    const own = this.#lastBeat
    await own
    if (this.#lastBeat === own) this.#lastBeat = undefined
  }

  async #writeDown(): Promise<void> {
    const { instanceId, version, startedAt } = this.#node
    const { heartbeats, restore } = this.#heartbeats.take()
    const node = { version, startedAt, draining: this.#draining }
    const seenMillisAgo = { first: 0, last: 0 }
    const self = { instanceId, role: 'service' as const, totals: noTotals(), seenMillisAgo, node }
    try {
      await this.#store.recordHeartbeats([...heartbeats, self])
    } catch (error) {
      restore()
      this.#events.failed(error)
    }
  }
}

import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Stopwatch, WallClock } from './clock.ts'
import { HEARTBEAT_INTERVAL_MILLIS, Heartbeats } from './heartbeats.ts'
import type { Store } from './store.ts'
import type { ActiveInstancesQuery, InstanceDetails, InstancePage, InstanceQuery } from './views/queries.ts'

export interface Node {
  readonly instanceId: string
  readonly version: string
  /** How busy it was since the last call, in per cent. */
  readonly load?: () => number
}

/** A running node writes between any two heartbeats of another. A second look tolerates a late one. */
const LOOKS_FOR_A_NAMESAKE = 2

/** Written at once. The event loop serves others in between. */
const WRITTEN_AT_ONCE = 500

interface InstanceCallbacks {
  failed(error: unknown): void
  /** Another node uses the same name, so both are shown as one instance. */
  hasNamesake(): void
}

/** Registers this node and the clients that it has seen, with a heartbeat every few seconds. */
export class InstanceRegister {
  readonly #store: Store
  readonly #node: Node & { readonly startedAt: number }
  readonly #callbacks: InstanceCallbacks
  readonly #clock: WallClock
  readonly #heartbeats: Heartbeats
  #heartbeat: NodeJS.Timeout | undefined
  #draining = false
  #beats = 0
  #lastBeat: Promise<void> | undefined
  #nextBeat: Promise<void> | undefined
  #looksLeft = LOOKS_FOR_A_NAMESAKE

  constructor(
    store: Store,
    node: Node,
    callbacks: InstanceCallbacks,
    clock: WallClock,
    stopwatch: Stopwatch,
  ) {
    this.#store = store
    this.#heartbeats = new Heartbeats(stopwatch)
    this.#node = { ...node, startedAt: clock() }
    this.#clock = clock
    this.#callbacks = callbacks
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

  /** Only when it was seen. The store counts what it pulled and sent, in the same transaction. */
  noteSeen(instanceId: string | null, role: 'producer' | 'worker'): void {
    if (instanceId !== null) this.#heartbeats.note(instanceId, role, 0)
  }

  /** Pulls are counted here, because empty pulls are not recorded in the store. */
  notePull(instanceId: string | null): void {
    if (instanceId !== null) this.#heartbeats.note(instanceId, 'worker', 1)
  }

  /** `null` means this node. */
  async instance(instanceId: string | null): Promise<InstanceDetails | null> {
    const id = instanceId ?? this.#node.instanceId
    const isBeating = this.#lastBeat !== undefined
    const beats = this.#beats
    const record = await this.#recordOf(id)
    if (!isBeating && beats === this.#beats) return record
    // What is being written is neither in memory nor in the store. After another heartbeat it is stored.
    await this.#beat()
    return this.#recordOf(id)
  }

  async instances(query: InstanceQuery): Promise<InstancePage> {
    await this.#beat()
    return this.#store.instances(query)
  }

  async activeInstances(query: ActiveInstancesQuery): Promise<string[]> {
    await this.#beat()
    return this.#store.activeInstances(query)
  }

  async #recordOf(id: string): Promise<InstanceDetails | null> {
    const stored = await this.#store.instance(id)
    return this.#heartbeats.merge(id, stored, stored?.now ?? this.#clock())
  }

  async #beatAgain(): Promise<void> {
    if (this.#looksLeft > 0) await this.#lookForNamesake()
    await this.#beat()
  }

  /** Not at the start: the record found then may be from the previous run of this node. */
  async #lookForNamesake(): Promise<void> {
    this.#looksLeft -= 1
    try {
      const { node } = (await this.#store.instance(this.#node.instanceId)) ?? { node: null }
      if (node === null || node.draining || node.startedAt === this.#node.startedAt) return
      this.#looksLeft = 0
      this.#callbacks.hasNamesake()
    } catch (error) {
      this.#callbacks.failed(error)
    }
  }

  /**
   * Writes everything seen so far. Heartbeats are written one after the other, so that data of an earlier one
   * is also written. Calls that arrive while one is queued share it, so that they do not pile up if the store
   * is unavailable.
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
    const { instanceId, version, startedAt, load } = this.#node
    const node = { version, startedAt, draining: this.#draining, load: load?.() ?? null }
    const seenMillisAgo = { first: 0, last: 0 }
    const self = { instanceId, role: 'service' as const, pulls: 0, seenMillisAgo, node }
    for (let left = this.#heartbeats.count; ; await nextIteration()) {
      const { heartbeats, restore } = this.#heartbeats.take(WRITTEN_AT_ONCE)
      left -= WRITTEN_AT_ONCE
      try {
        await this.#store.recordHeartbeats(left > 0 ? heartbeats : [...heartbeats, self])
      } catch (error) {
        restore()
        this.#callbacks.failed(error)
        return
      }
      if (left <= 0) return
    }
  }
}

import { randomUUID } from 'node:crypto'
import type { InstanceState } from '@baton/protocol'
import { withTimeout } from './clock.ts'
import { statusOf } from './instance-status.ts'
import type { Store } from './store.ts'
import type { InstanceDetails, ParkedNotice, TaskRow } from './views/queries.ts'

/** A task is reported at most once per tick, however often it changes. */
const TICK_MILLIS = 400
const TASKS_PER_TICK = 100
const INSTANCES_EVERY_TICKS = 8
export const INSTANCES_WATCHED = 1000
const TICKS_KEPT = 150
const PATIENCE_MILLIS = 2000

export type StreamEvent =
  | { readonly kind: 'task'; readonly row: TaskRow; readonly now: number }
  | { readonly kind: 'parked'; readonly notice: ParkedNotice }
  | { readonly kind: 'instance'; readonly instance: InstanceDetails; readonly status: InstanceState }
  /** Something may have been missed: the watcher must reload everything. */
  | { readonly kind: 'reset' }

/** `id` is the position of a watcher that has seen it. A tick without events only sends that. */
export interface Tick {
  readonly id: string
  readonly events: readonly StreamEvent[]
}

type Watcher = (tick: Tick) => void

/** The changes for `GET /events`, of all nodes. Read once per tick for all watchers, if there are any. */
export class ChangeStream {
  readonly #store: Pick<Store, 'changes' | 'instances'>
  readonly #failed: (error: unknown) => void
  readonly #watchers = new Set<Watcher>()
  readonly #kept: Tick[] = []
  readonly #statuses = new Map<string, InstanceState>()
  #position: string | null = null
  /** Resolves when the starting position is known. */
  #begun = Promise.withResolvers<void>()
  #ticks = 0
  #timer: NodeJS.Timeout | undefined

  constructor(store: Pick<Store, 'changes' | 'instances'>, failed: (error: unknown) => void) {
    this.#store = store
    this.#failed = failed
  }

  get watchers(): number {
    return this.#watchers.size
  }

  /** Resolves when all later changes will be reported, or after a timeout. */
  async begun(): Promise<void> {
    await withTimeout(this.#begun.promise, PATIENCE_MILLIS, () => undefined)
  }

  /** Watches from now on, or from the tick after `lastId` if it is still kept. Returns a function to stop. */
  watch(lastId: string | null, watcher: Watcher): () => void {
    const present = this.#kept.at(-1)
    if (lastId !== null) this.#catchUp(lastId, watcher)
    // The current position lets a watcher resume even if it loses its connection before the first event.
    else if (present !== undefined) watcher({ id: present.id, events: [] })
    this.#watchers.add(watcher)
    this.#timer ??= setTimeout(() => void this.#tick(), 0)
    return () => {
      this.#watchers.delete(watcher)
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#watchers.clear()
  }

  #catchUp(lastId: string, watcher: Watcher): void {
    const seen = this.#kept.findIndex(({ id }) => id === lastId)
    if (seen === -1) watcher({ id: this.#kept.at(-1)?.id ?? lastId, events: [{ kind: 'reset' }] })
    else for (const tick of this.#kept.slice(seen + 1)) watcher(tick)
  }

  async #tick(): Promise<void> {
    // Separately: changes are read only once, so an error when reading instances must not lose them.
    await this.#tellOf(() => this.#changes())
    await this.#tellOf(() => this.#instanceChanges())
    if (this.#watchers.size > 0) this.#timer = setTimeout(() => void this.#tick(), TICK_MILLIS)
    else this.#rest()
  }

  /** There are no watchers: changes until the next one arrives are not tracked. */
  #rest(): void {
    this.#timer = undefined
    this.#position = null
    this.#begun = Promise.withResolvers()
    this.#kept.length = 0
    this.#statuses.clear()
    this.#ticks = 0
  }

  async #tellOf(read: () => Promise<StreamEvent[]>): Promise<void> {
    try {
      const events = await read()
      if (events.length > 0) this.#publish({ id: this.#position ?? '', events })
    } catch (error) {
      this.#failed(error)
    }
  }

  #publish(tick: Tick): void {
    this.#kept.push(tick)
    if (this.#kept.length > TICKS_KEPT) this.#kept.shift()
    for (const watcher of this.#watchers) watcher(tick)
  }

  async #changes(): Promise<StreamEvent[]> {
    const { next, missed, now, tasks, parked } = await this.#store.changes({
      after: this.#position,
      limit: TASKS_PER_TICK,
    })
    const isFirst = this.#position === null
    this.#position = next
    // No position: positions stay valid across a rest, but changes of instances in between are unknown.
    if (isFirst) this.#publish({ id: randomUUID(), events: [] })
    this.#begun.resolve()
    return [
      ...(missed ? [{ kind: 'reset' as const }] : []),
      ...tasks.map((row) => ({ kind: 'task' as const, row, now })),
      ...parked.map((notice) => ({ kind: 'parked' as const, notice })),
    ]
  }

  async #instanceChanges(): Promise<StreamEvent[]> {
    const isDue = this.#ticks % INSTANCES_EVERY_TICKS === 0
    const isFirst = this.#ticks === 0
    this.#ticks += 1
    if (!isDue) return []
    const events: StreamEvent[] = []
    const { instances } = await this.#store.instances({ after: null, limit: INSTANCES_WATCHED })
    for (const instance of instances) {
      const status = statusOf(instance)
      const before = this.#statuses.get(instance.instanceId)
      this.#statuses.set(instance.instanceId, status)
      if (!isFirst && before !== status) events.push({ kind: 'instance', instance, status })
    }
    return events
  }
}

import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import { noTotals, type TotalsAdded } from '../views/queries.ts'
import type { Entry } from './entry.ts'
import type { Memory } from './state/memory.ts'
import { laterOf } from './state/unflushed.ts'
import type { TouchedRows } from './touched-rows.ts'

export class InstanceChanges {
  readonly memory: Memory
  readonly rows: Entry['instances'][number][] = []
  readonly #totals = new Map<string, TotalsAdded>()
  readonly #touched: TouchedRows
  readonly #now: number

  constructor(memory: Memory, touched: TouchedRows, now: number) {
    this.memory = memory
    this.#touched = touched
    this.#now = now
  }

  get totals(): TotalsAdded[] {
    return [...this.#totals.values()]
  }

  get isEmpty(): boolean {
    return this.rows.length === 0 && this.#totals.size === 0
  }

  /** The disk keeps a row for every instance that pulled or sent something. */
  saw(instanceId: string, role: InstanceRole): void {
    if (this.memory.instances.has(instanceId)) return
    this.memory.instances.set(instanceId, role)
    this.#touched.newInstances.push(instanceId)
    this.rows.push([instanceId, role, this.#now])
  }

  /** Counters to be incremented, stored in the entry of what they count. */
  totalsOf(instanceId: string, role: InstanceRole): InstanceTotals {
    let added = this.#totals.get(instanceId)
    if (added === undefined) {
      added = { instanceId, role, at: this.#now, totals: noTotals(), lostUnlessSeenSince: null }
      this.#totals.set(instanceId, added)
    }
    return added.totals
  }

  /** A lease of the instance expired. If it was not seen since then, it was silent. */
  noteExpired(instanceId: string, since: number): void {
    this.totalsOf(instanceId, 'worker').expired += 1
    const added = this.#totals.get(instanceId)
    if (added !== undefined) added.lostUnlessSeenSince = laterOf(added.lostUnlessSeenSince, since)
  }

  /** Returns since when it is paused. Pausing it again changes nothing. */
  pause(instanceId: string, role: InstanceRole, paused: boolean): number | null {
    const { pausedInstances } = this.memory
    const before = pausedInstances.get(instanceId) ?? null
    if (paused === (before !== null)) return before
    if (!this.#touched.pausedInstances.has(instanceId))
      this.#touched.pausedInstances.set(instanceId, before ?? undefined)
    const pausedAt = paused ? this.#now : null
    if (pausedAt === null) pausedInstances.delete(instanceId)
    else pausedInstances.set(instanceId, pausedAt)
    this.rows.push([instanceId, role, this.#now, pausedAt])
    return pausedAt
  }
}

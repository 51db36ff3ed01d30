import { next } from '../../../handoff/rules/life-cycle.ts'
import { KEY_GRACE_MILLIS } from '../../../handoff/rules/policy.ts'
import { CountDeltas } from '../counters/count-deltas.ts'
import type { SavedKey } from '../pull/pull-keys.ts'
import type { Note, NotedFinish, NotedLease } from './notes.ts'

/** A lease that was settled, and when. */
export interface Finish extends NotedFinish {
  readonly at: number
}

/** A lease that was given, and what became of it. */
export interface Lease extends NotedLease {
  readonly at: number
  readonly dueAt: number
  /** Of its note. */
  readonly number: number
  finish: Finish | null
}

export interface FoldedNotes {
  readonly leases: readonly Lease[]
  /** Of leases that were given before. */
  readonly finishes: readonly Finish[]
  readonly keys: readonly SavedKey[]
}

/** What became of each partition, sorted by id like everyone's who locks several. */
export function foldNotes(notes: readonly Note[]): FoldedNotes {
  const leases = new Map<number, Lease>()
  const finishes: Finish[] = []
  for (const { number, at, given, finished } of notes) {
    for (const lease of given)
      leases.set(lease.id, { ...lease, number, at, dueAt: at + lease.lastsMillis, finish: null })
    for (const finish of finished) {
      const lease = leases.get(finish.id)
      if (lease === undefined) finishes.push({ ...finish, at })
      else lease.finish = { ...finish, at }
    }
  }
  const byId = (a: { readonly id: number }, b: { readonly id: number }) => a.id - b.id
  return {
    keys: keysOf([...leases.values()]),
    leases: [...leases.values()].sort(byId),
    finishes: finishes.sort(byId),
  }
}

/** Which set each is due with: those of one note that end at the same time are due together, up to so many. */
export function setsOf(leases: readonly Lease[], largest: number): number[] {
  const open = new Map<string, { readonly set: number; room: number }>()
  let sets = 0
  return leases.map(({ number, dueAt }) => {
    const which = `${number} ${dueAt}`
    let of = open.get(which)
    if (of === undefined || of.room === 0) {
      of = { set: sets, room: largest }
      sets += 1
      open.set(which, of)
    }
    of.room -= 1
    return of.set
  })
}

/** By seconds, because that is how the pace is kept; each with the time of the last that was counted in it. */
export function countedBySeconds(
  leases: readonly Lease[],
  finishes: readonly Finish[],
): Iterable<{ readonly at: number; readonly deltas: CountDeltas }> {
  const seconds = new Map<number, { at: number; readonly deltas: CountDeltas }>()
  const during = (at: number) => {
    const second = Math.floor(at / 1000)
    const of = seconds.get(second) ?? { at, deltas: new CountDeltas() }
    of.at = Math.max(of.at, at)
    seconds.set(second, of)
    return of.deltas
  }
  const to = next('leased', 'finish')
  for (const { lane, recordCount, rank, fresh, at, finish } of leases) {
    const deltas = during(finish?.at ?? at)
    if (fresh) deltas.advance(lane, BigInt(rank), recordCount)
    deltas.move(lane, 'ready', finish === null ? next('ready', 'lease') : to, recordCount)
    if (finish !== null) countFinish(deltas, finish)
  }
  for (const finish of finishes) {
    const deltas = during(finish.at)
    deltas.move(finish.lane, 'leased', to, finish.recordCount)
    countFinish(deltas, finish)
  }
  return seconds.values()
}

function countFinish(deltas: CountDeltas, { lane, recordCount, reported }: Finish): void {
  deltas.finished(lane, recordCount)
  if (reported !== null) deltas.reported(lane, recordCount, reported)
}

/** In the order of the hand-off. */
function keysOf(leases: readonly Lease[]): SavedKey[] {
  const given = new Map<string, { partitions: number[]; secrets: string[]; forgetAt: number }>()
  for (const { key, id, secret, dueAt } of leases) {
    if (key === null) continue
    const of = given.get(key) ?? { partitions: [], secrets: [], forgetAt: 0 }
    given.set(key, of)
    of.partitions.push(id)
    of.secrets.push(secret)
    of.forgetAt = Math.max(of.forgetAt, dueAt + KEY_GRACE_MILLIS)
  }
  return [...given].map(([key, of]) => ({ key, ...of }))
}

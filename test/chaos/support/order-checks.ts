import {
  type AskedPull,
  type History,
  isAccepted,
  leasesByPartition,
  type SeenLease,
  story,
} from './history.ts'
import { ROUNDING_MILLIS } from './lease-checks.ts'
import type { ProducedTask } from './produced-task.ts'
import type { Findings } from './scene.ts'

export interface Span {
  readonly from: number
  readonly until: number
}

/** A period in which a partition was certainly ready: only a pull could have changed that, and none did. */
interface Ready extends Span {
  readonly name: string
  readonly level: number
}

/** From the third release in a row on, a partition is delayed before it is ready again. */
const PATIENT_RELEASES = 2

/**
 * Checks that lower levels are handed out first, and that the partitions of a task's level are first handed
 * out in the order of their call-back. Reports only what the times of requests and answers prove: a pull
 * takes effect between its first sending and its first answer.
 *
 * `unsure` are periods about which nothing is known.
 */
export function checkOrder(history: History, findings: Findings, unsure: readonly Span[] = []): void {
  const byPartition = leasesByPartition(history)
  const ready = [...history.tasks.values()].flatMap((task) => readyTimes(task, byPartition, unsure))
  checkLevels(ready, history, findings)
  for (const task of history.tasks.values()) checkLanes(task, byPartition, findings)
}

/**
 * Reports a lease of a pull during which, from its sending to its answer, a partition of a lower level was
 * ready.
 */
function checkLevels(ready: readonly Ready[], { leases }: History, findings: Findings): void {
  const byStart = ready.toSorted((a, b) => a.from - b.from)
  /** For each level, the partition that was ready when the pull was sent and stayed ready the longest. */
  const longest = new Map<number, Ready>()
  /** At most one finding for each pull. */
  const told = new Set<AskedPull>()
  let next = 0
  for (const lease of [...leases.values()].toSorted((a, b) => a.asked.sentAt - b.asked.sentAt)) {
    for (let one = byStart[next]; one !== undefined && one.from < lease.asked.sentAt; one = byStart[next]) {
      if (one.until > (longest.get(one.level)?.until ?? 0)) longest.set(one.level, one)
      next += 1
    }
    const { priorityLevel } = lease.partition
    const passedOver = [...longest.values()].find(
      ({ level, until }) => level < priorityLevel && until > lease.receivedAt,
    )
    if (passedOver === undefined || told.has(lease.asked)) continue
    told.add(lease.asked)
    const { name, from, until } = passedOver
    findings.add(`${name} was ready from ${from} to ${until}, and its level goes first: ${story(lease)}`)
  }
}

function readyTimes(
  task: ProducedTask,
  byPartition: ReadonlyMap<string, readonly SeenLease[]>,
  unsure: readonly Span[],
): Ready[] {
  const closed: Span[] = [
    ...unsure,
    ...task.pauses.map(({ sentAt, resumedAt }) => ({ from: sentAt, until: resumedAt })),
    ...(task.cancelSentAt === undefined
      ? []
      : [{ from: task.cancelSentAt, until: Number.POSITIVE_INFINITY }]),
  ]
  const acceptedAt = new Map<string, number>()
  for (const { descriptors, accepted } of task.arrays) {
    const at = Math.min(...accepted.map(({ receivedAt }) => receivedAt))
    for (const { partition_name: name } of descriptors)
      acceptedAt.set(name, Math.min(acceptedAt.get(name) ?? Number.POSITIVE_INFINITY, at))
  }
  return [...task.partitions.values()].flatMap(({ partition_name: name, priorityLevel: level }) => {
    // Only the service knows when higher levels are opened.
    if (task.hasBarrier && level > 0) return []
    const leases = byPartition.get(name) ?? []
    const waits = [
      ...(leases[0]?.leaseNumber === 1
        ? [{ from: acceptedAt.get(name) ?? 0, until: leases[0].asked.sentAt }]
        : []),
      ...timesReleased(leases),
    ]
    return without(waits, closed).map((wait) => ({ ...wait, name, level }))
  })
}

/** From a release before expiry to the next lease, if no unseen lease was in between. */
function timesReleased(leases: readonly SeenLease[]): Span[] {
  if (leases.filter(({ sentAt }) => sentAt.released !== undefined).length > PATIENT_RELEASES) return []
  return leases.flatMap((lease, position) => {
    const next = leases[position + 1]
    const isOnlyReleased = Object.keys(lease.sentAt).join() === 'released'
    if (next === undefined || next.leaseNumber !== lease.leaseNumber + 1 || !isOnlyReleased) return []
    const released = lease.settlements.find(
      (one) => isAccepted(one) && lease.runs.some(({ until }) => one.receivedAt < until - ROUNDING_MILLIS),
    )
    return released === undefined ? [] : [{ from: released.receivedAt, until: next.asked.sentAt }]
  })
}

function without(spans: readonly Span[], closed: readonly Span[]): Span[] {
  let left = [...spans]
  for (const { from, until } of closed)
    left = left.flatMap((span) =>
      span.until <= from || span.from >= until
        ? [span]
        : [
            { from: span.from, until: from },
            { from: until, until: span.until },
          ],
    )
  return left.filter(({ from, until }) => from < until)
}

/** The first lease of a partition. */
interface First {
  readonly lease: SeenLease
  readonly from: number
  readonly until: number
}

function checkLanes(
  task: ProducedTask,
  byPartition: ReadonlyMap<string, readonly SeenLease[]>,
  findings: Findings,
): void {
  const firsts = new Map<string, First>()
  for (const name of task.partitions.keys()) {
    const lease = byPartition.get(name)?.[0]
    if (lease?.leaseNumber === 1)
      firsts.set(name, { lease, from: lease.asked.sentAt, until: lease.receivedAt })
  }
  const tell = (ahead: First, behind: First) =>
    findings.add(`not in the order of the call-back: ${story(behind.lease)} | ${story(ahead.lease)}`)
  checkArrays(task, firsts, tell)
  checkBetweenArrays(task, firsts, tell)
}

type Tell = (ahead: First, behind: First) => void

/**
 * Checks the order within an array. A partition in several arrays may come from any of them, so it is only
 * compared as the earlier one of two.
 */
function checkArrays({ arrays }: ProducedTask, firsts: ReadonlyMap<string, First>, tell: Tell): void {
  const arraysOf = new Map<string, number>()
  for (const { descriptors } of arrays)
    for (const { partition_name: name } of descriptors) arraysOf.set(name, (arraysOf.get(name) ?? 0) + 1)
  for (const { descriptors } of arrays) {
    const latest = new Map<number, First>()
    for (const { partition_name: name, priorityLevel: level } of descriptors) {
      const first = firsts.get(name)
      if (first === undefined) continue
      const ahead = latest.get(level)
      if (arraysOf.get(name) === 1 && ahead !== undefined && ahead.from > first.until) tell(ahead, first)
      if (ahead === undefined || first.from > ahead.from) latest.set(level, first)
    }
  }
}

/** Partitions that were acknowledged before an array was sent come before all of that array. */
function checkBetweenArrays({ arrays }: ProducedTask, firsts: ReadonlyMap<string, First>, tell: Tell): void {
  const sentAt = new Map<string, number>()
  for (const { descriptors, sentAt: at } of arrays)
    for (const { partition_name: name } of descriptors)
      sentAt.set(name, Math.min(sentAt.get(name) ?? Number.POSITIVE_INFINITY, at))
  const accepted = arrays
    .flatMap(({ descriptors, accepted: answers }) =>
      answers.map(({ receivedAt }) => ({ descriptors, receivedAt })),
    )
    .toSorted((a, b) => a.receivedAt - b.receivedAt)
  const latest = new Map<number, First>()
  let next = 0
  const later = [...firsts].map(([name, first]) => ({ name, first, sentAt: sentAt.get(name) ?? 0 }))
  for (const { first, sentAt: at } of later.toSorted((a, b) => a.sentAt - b.sentAt)) {
    for (let one = accepted[next]; one !== undefined && one.receivedAt < at; one = accepted[next]) {
      for (const { partition_name: name, priorityLevel: level } of one.descriptors) {
        const ahead = firsts.get(name)
        if (ahead !== undefined && ahead.from > (latest.get(level)?.from ?? 0)) latest.set(level, ahead)
      }
      next += 1
    }
    const ahead = latest.get(first.lease.partition.priorityLevel)
    if (ahead !== undefined && ahead.from > first.until) tell(ahead, first)
  }
}

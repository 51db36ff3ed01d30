import type { Asking } from './asking.ts'
import type { Chance } from './chance.ts'
import type { Findings } from './findings.ts'
import type { History } from './history.ts'

/** How much goes on at a time. */
export interface Size {
  readonly producers: number
  readonly workers: number
  readonly operators: number
  /** Producers wait when so many partitions are not finished, until only `ebb` are left. */
  readonly backlog: number
  readonly ebb: number
  /** The most that a pull asks for, but for the few large ones. */
  readonly batch: number
  /** How often anybody does anything but pull and settle as done, as a share of how often that is otherwise. */
  readonly contrary: number
}

/**
 * A node that is alone hands out from memory as long as nobody wants anything else of it. So those who use it rarely do, their
 * pulls are small enough to be answered together, and tasks are called back in bursts.
 */
export function mostlyPlain(size: Size): Size {
  return { ...size, ebb: size.backlog / 3, batch: 6, contrary: 0.01 }
}

/** What everyone who takes part in a run shares. */
export interface Scene {
  readonly asking: Asking
  readonly history: History
  readonly findings: Findings
  readonly chance: Chance
  readonly size: Size
  /** While set, tasks are called back, orders are given, and workers are slow, forgetful and contrary. */
  isStormy: boolean
  /** Nothing is left to do. */
  isOver: boolean
}

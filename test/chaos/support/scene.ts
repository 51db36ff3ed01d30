import type { Asking } from './asking.ts'
import type { Chance } from './chance.ts'
import type { Findings } from './findings.ts'
import type { History } from './history.ts'

/** How much goes on at a time. */
export interface Size {
  readonly producers: number
  readonly workers: number
  readonly operators: number
  /** Producers wait while so many partitions are not finished. */
  readonly backlog: number
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

import type { Asking } from './asking.ts'
import type { Chance } from './chance.ts'
import type { History } from './history.ts'

/** How much goes on at a time. */
export interface Size {
  readonly producers: number
  readonly workers: number
  /** With none of them no task has a level barrier either: that is an order, too. */
  readonly operators: number
  /** Producers wait when so many partitions are not finished, until only `ebb` are left. */
  readonly backlog: number
  readonly ebb: number
  /** How often clients do anything but pull and settle as done, as a share of how often they do otherwise. */
  readonly contrary: number
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

const ENOUGH = 40

/** What a run has found that must not be. */
export class Findings {
  readonly all: string[] = []
  readonly #tell: (finding: string) => void

  constructor(tell: (finding: string) => void = () => {}) {
    this.#tell = tell
  }

  /** More than these would only repeat them. */
  get areEnough(): boolean {
    return this.all.length >= ENOUGH
  }

  add(finding: string): void {
    if (this.areEnough) return
    this.all.push(finding)
    this.#tell(finding)
  }
}

import type { Chance } from './chance.ts'
import type { CheckedClient } from './checked-client.ts'
import type { History } from './history.ts'

/** The size of the load. */
export interface Size {
  readonly producers: number
  readonly workers: number
  /** Without operators, no task has a level barrier either, since setting one is a control request. */
  readonly operators: number
  /** Producers wait at this many unfinished partitions, until only `ebb` are left. */
  readonly backlog: number
  readonly ebb: number
  /**
   * How often clients do something other than pull and settle as done, as a factor of the usual frequency.
   */
  readonly contrary: number
  /** The limit of one compute table. Null: it has none, since the store may lose it. */
  readonly maxLeases: number | null
}

/** What all participants of a run share. */
export interface Scene {
  readonly client: CheckedClient
  readonly history: History
  readonly findings: Findings
  readonly chance: Chance
  readonly size: Size
  /**
   * While set, tasks are called back, control requests are sent, and workers are slow, forget leases and
   * fail.
   */
  isStormy: boolean
  /** Nothing is left to do. */
  isOver: boolean
}

const ENOUGH = 40

/** The violations that a run has found. */
export class Findings {
  readonly all: string[] = []
  readonly #tell: (finding: string) => void

  constructor(tell: (finding: string) => void = () => {}) {
    this.#tell = tell
  }

  /** Further findings would only repeat these. */
  get areEnough(): boolean {
    return this.all.length >= ENOUGH
  }

  add(finding: string): void {
    if (this.areEnough) return
    this.all.push(finding)
    this.#tell(finding)
  }
}

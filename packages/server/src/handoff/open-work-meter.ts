import type { Log } from './log.ts'
import type { OpenWorkLimits } from './rules/open-work-limits.ts'

const WARN_AT = 0.8
/** A warning is logged again after the use was below this share. */
const WARN_AGAIN_BELOW = 0.7

type Kind = 'lanes' | 'leases'

/** Measures the open work in the memory of this node, and warns before a limit is reached. */
export class OpenWorkMeter {
  readonly limits: Pick<OpenWorkLimits, Kind>
  readonly #log: Log
  readonly #warned = new Set<Kind>()
  lanes = 0
  leases = 0

  constructor(limits: Pick<OpenWorkLimits, Kind>, log: Log) {
    this.limits = limits
    this.#log = log
  }

  note(lanes: number, leases: number): void {
    this.lanes = lanes
    this.leases = leases
    this.#warn('lanes')
    this.#warn('leases')
  }

  /** This node has nothing in memory any more. */
  forget(): void {
    this.lanes = 0
    this.leases = 0
  }

  #warn(kind: Kind): void {
    const { [kind]: used } = this
    const { [kind]: most } = this.limits
    if (used < most * WARN_AGAIN_BELOW) this.#warned.delete(kind)
    if (used < most * WARN_AT || this.#warned.has(kind)) return
    this.#warned.add(kind)
    this.#log.warn({ [kind]: used, most }, WARNINGS[kind])
  }
}

const WARNINGS = {
  lanes: 'open work has 80 % of the lanes that --max-lanes allows: call-backs beyond it will be refused',
  leases: 'there are 80 % of the leases that --max-leases allows: pulls beyond it will be empty',
}

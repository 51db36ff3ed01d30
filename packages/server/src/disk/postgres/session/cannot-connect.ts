import { StoreRefused, StoreUnavailable } from '../../../handoff/store.ts'

/** Why a host could not be connected to. */
export interface Fault {
  /** Shown to clients, too, so it contains no hosts, users or files. */
  readonly reason: string
  /** The exact error message, for the operator. */
  readonly exactly?: string
  /** Set if there is better advice than to check the URL and PostgreSQL. */
  readonly remedy?: string
  /** The cause is on this machine and does not depend on the host. */
  readonly isHere?: true
  /**
   * How far the connection got. The furthest is the most informative: a refused password beats an unreachable
   * host.
   */
  readonly weight: 'away' | 'standby' | 'refused'
}

export interface FaultyHost extends Fault {
  readonly where: string
}

const WEIGHTS = ['away', 'standby', 'refused'] as const

/**
 * No host could be connected to. Clients get the most informative reason; the log has the reason of each
 * host.
 */
export class CannotConnect extends StoreUnavailable {
  readonly #faults: readonly FaultyHost[]

  constructor(faults: readonly FaultyHost[]) {
    const telling = faults.toSorted((a, b) => WEIGHTS.indexOf(b.weight) - WEIGHTS.indexOf(a.weight))[0]
    super('store_unavailable', `${telling?.reason ?? 'there is no host'}; the request can be sent again`, {
      cause: new Error(inWords(faults)),
    })
    this.#faults = faults
  }

  /** For the operator who starts the service: what is wrong, where, and what to check. */
  asRefused(): StoreRefused {
    const [only, ...others] = this.#faults
    const words = inWords(this.#faults)
    if (others.length > 0)
      return new StoreRefused(`no host of the database URL can be used: ${words}`, { cause: this })
    if (only === undefined || only.remedy !== undefined) return new StoreRefused(words, { cause: this })
    return new StoreRefused(`${exactly(only)}; check the database URL, and PostgreSQL at ${only.where}`, {
      cause: this,
    })
  }
}

const inWords = (faults: readonly FaultyHost[]): string => [...new Set(faults.map(inItsWords))].join('; ')

function inItsWords(fault: FaultyHost): string {
  const what = fault.isHere === true ? exactly(fault) : `at ${fault.where} ${exactly(fault)}`
  return fault.remedy === undefined ? what : `${what}; ${fault.remedy}`
}

const exactly = ({ reason, exactly }: Fault): string =>
  exactly === undefined ? reason : `${reason} (${exactly})`

import { StoreRefused, StoreUnavailable } from '../../../handoff/store.ts'

/** Why one host gives no connection. */
export interface Fault {
  /** For everyone, also those who only send requests: neither hosts nor users nor files. */
  readonly reason: string
  /** For whoever runs the service: what exactly was said. */
  readonly exactly?: string
  /** Where there is more to say than to look at the URL and at PostgreSQL. */
  readonly remedy?: string
  /** What is wrong is on this side, whichever host it is. */
  readonly isHere?: true
  /** What came from further inside tells more: a refused password beats a host that nobody answers at. */
  readonly weight: 'away' | 'standby' | 'refused'
}

export interface FaultyHost extends Fault {
  readonly where: string
}

const WEIGHTS = ['away', 'standby', 'refused'] as const

/** None of the hosts gives a connection. Requests are answered with the reason that tells most, the log has each host's. */
export class CannotConnect extends StoreUnavailable {
  readonly #faults: readonly FaultyHost[]

  constructor(faults: readonly FaultyHost[]) {
    const telling = faults.toSorted((a, b) => WEIGHTS.indexOf(b.weight) - WEIGHTS.indexOf(a.weight))[0]
    super('store_unavailable', `${telling?.reason ?? 'there is no host'}; the request can be sent again`, {
      cause: new Error(inWords(faults)),
    })
    this.#faults = faults
  }

  /** For whoever starts the service: what is wrong, where, and what to look at. */
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

import { StoreRefused, StoreUnavailable } from '../../../handoff/store.ts'
import { ConnectionLost, isPoolerError, reasonOf, sqlState } from './errors.ts'

/** Why a host could not be connected to. */
interface Fault {
  /** Shown to clients, too, so it contains no hosts, users or files. */
  readonly reason: string
  /** The exact error message, for the operator. */
  readonly exactly?: string
  /** Set if there is better advice than to check the URL and PostgreSQL. */
  readonly remedy?: string
  /** The cause is on this machine and does not depend on the host. */
  readonly isHere?: true
  /** The furthest tells most: a refused password beats an unreachable host. */
  readonly reached: 'nothing' | 'standby' | 'server'
}

export interface FaultyHost extends Fault {
  readonly where: string
}

const REACHED = ['nothing', 'standby', 'server'] as const

/** Clients get the most informative reason; the log has that of each host. */
export class CannotConnect extends StoreUnavailable {
  readonly #faults: readonly FaultyHost[]

  constructor(faults: readonly FaultyHost[]) {
    const telling = faults.toSorted((a, b) => REACHED.indexOf(b.reached) - REACHED.indexOf(a.reached))[0]
    super(
      'store_unavailable',
      `${telling?.reason ?? 'the database URL has no host'}; the request can be sent again`,
      {
        cause: new Error(inWords(faults)),
      },
    )
    this.#faults = faults
  }

  /** For the operator who starts the service: what is wrong, where, and what to check. */
  asRefused(): StoreRefused {
    const [only, ...others] = this.#faults
    const words = inWords(this.#faults)
    if (others.length > 0)
      return new StoreRefused(`no host of the database URL can be used: ${words}`, { cause: this })
    if (only === undefined || only.remedy !== undefined) return new StoreRefused(words, { cause: this })
    return new StoreRefused(`${exactly(only)}; check the database URL and PostgreSQL at ${only.where}`, {
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

/** Node's codes for a certificate chain without a trusted root. */
const UNTRUSTED = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_UNTRUSTED',
  'CERT_SIGNATURE_FAILURE',
  'INVALID_CA',
])

const OTHERS = /^(?:ERR_(?:SSL|OSSL|TLS)_|CERT_|CRL_|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED)/

interface TlsError extends Error {
  readonly code?: string
  /** OpenSSL's reason without its error codes. */
  readonly reason?: string
  readonly host?: string
  readonly cert?: { readonly subjectaltname?: string; readonly subject?: { readonly CN?: string } }
}

type Words = Omit<Fault, 'reached'>

const certificateFaults: Readonly<Record<string, Words>> = {
  CERT_HAS_EXPIRED: {
    reason: 'the certificate of PostgreSQL, or of its CA, has expired',
    remedy: 'renew the certificate, and check the clock of this machine',
  },
  CERT_NOT_YET_VALID: {
    reason: 'the certificate of PostgreSQL, or of its CA, is not valid yet',
    remedy: 'check the clock of this machine, or renew the certificate',
  },
}

/** Undefined if the error is not about TLS. */
function ofTls(error: TlsError): Fault | undefined {
  const words = tlsFault(error)
  return words && { ...words, reached: 'server' }
}

function tlsFault({ code = '', message, reason = message, host, cert }: TlsError): Words | undefined {
  if (UNTRUSTED.has(code))
    return {
      reason: 'the certificate of PostgreSQL is not signed by a trusted CA',
      // Without Node's hint at a flag of its own, which does not help if this machine lacks the CA.
      exactly: message.replace(/;.*/s, ''),
      remedy:
        'set the CA file with sslrootcert=FILE in the database URL, or with the variable NODE_EXTRA_CA_CERTS',
    }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      reason: 'the certificate of PostgreSQL is for another host',
      exactly: `it is for ${cert?.subjectaltname ?? cert?.subject?.CN ?? 'no name'}, not for ${host}`,
      remedy: 'use a host name of the certificate in the database URL, or issue a certificate for this host',
    }
  // The driver has no codes for these two.
  if (message === 'The server does not support SSL connections')
    return {
      reason: 'the database URL requires TLS, and PostgreSQL does not offer it',
      remedy:
        'enable TLS in PostgreSQL (ssl = on) or, in a trusted network, set sslmode=disable in the database URL',
    }
  if (certificateFaults[code] !== undefined) return certificateFaults[code]
  if (!OTHERS.test(code) && message !== 'There was an error establishing an SSL connection') return undefined
  return {
    reason: 'TLS with PostgreSQL failed',
    exactly: reason,
    remedy: 'check sslrootcert, sslcert and sslkey in the database URL, and the log of PostgreSQL',
  }
}

/** The server is reachable and accepts the login, but takes no writes. */
export class IsStandby extends Error {
  override name = 'IsStandby'
}

/** Why a connection could not be opened. */
export function faultOf(error: unknown): Fault {
  const first = firstOf(error)
  return (
    ofStandby(first) ?? ofServer(first) ?? ofTls(first) ?? ofFile(first) ?? ofSocket(first) ?? ofDriver(first)
  )
}

/** A host name with several addresses fails with one error per address. */
function firstOf(error: unknown): Error {
  const [first] = error instanceof AggregateError ? error.errors : []
  return (first ?? error) as Error
}

function ofStandby(error: Error): Fault | undefined {
  if (!(error instanceof IsStandby)) return undefined
  return {
    reason: 'PostgreSQL is a standby and accepts no writes',
    remedy: 'use the primary in the database URL, or both hosts separated by a comma',
    reached: 'standby',
  }
}

/** PostgreSQL's messages contain user and database names, but no secrets. */
function ofServer(error: Error): Fault | undefined {
  const state = sqlState(error)
  if (state === undefined) return undefined
  const reason = isPoolerError(error)
    ? 'the pooler refuses the connection'
    : (reasonOf(error, state) ?? 'PostgreSQL refuses the connection')
  return { reason, exactly: error.message, reached: 'server' }
}

/** The driver reads these files for each connection. The error for a directory has no path. */
function ofFile({ code, syscall, message }: NodeJS.ErrnoException): Fault | undefined {
  if (syscall !== 'open' && code !== 'EISDIR') return undefined
  return {
    reason: 'a file in the database URL cannot be read',
    exactly: message,
    remedy: 'sslrootcert, sslcert and sslkey must be files on this machine',
    isHere: true,
    reached: 'server',
  }
}

function ofSocket({ code, syscall }: NodeJS.ErrnoException): Fault | undefined {
  if (code === undefined || syscall === undefined) return undefined
  return { reason: `PostgreSQL cannot be reached (${code})`, reached: 'nothing' }
}

/** The driver's errors have no codes. */
function ofDriver(error: Error): Fault {
  if (error instanceof ConnectionLost && error.cause instanceof Error) return faultOf(error.cause)
  const { message } = error
  if (message.includes('timeout')) return { reason: 'PostgreSQL did not answer in time', reached: 'nothing' }
  if (message.includes('password must be'))
    return { reason: 'PostgreSQL requires a password, and the database URL has none', reached: 'server' }
  return { reason: 'no connection to PostgreSQL could be made', exactly: message, reached: 'nothing' }
}

import type { Fault } from './cannot-connect.ts'
import { ConnectionLost, isPoolers, reasonOf, sqlState } from './failures.ts'
import { tlsFaultOf } from './tls-faults.ts'

/** It would let us in, and takes no writes. */
export class IsStandby extends Error {
  override name = 'IsStandby'
}

/** What went wrong while a connection was opened, in words. */
export function faultOf(error: unknown): Fault {
  const first = firstOf(error)
  return (
    ofStandby(first) ??
    ofServer(first) ??
    tlsFaultOf(first) ??
    ofFile(first) ??
    ofSocket(first) ??
    ofDriver(first)
  )
}

/** A name with several addresses fails with an error for each. */
function firstOf(error: unknown): Error {
  const [first] = error instanceof AggregateError ? error.errors : []
  return (first ?? error) as Error
}

function ofStandby(error: Error): Fault | undefined {
  if (!(error instanceof IsStandby)) return undefined
  return {
    reason: 'PostgreSQL is a standby and takes no writes',
    remedy: 'name the primary in the database URL, or both hosts with a comma between them',
    weight: 'standby',
  }
}

/** PostgreSQL's own text names users and databases, and no secret. */
function ofServer(error: Error): Fault | undefined {
  const state = sqlState(error)
  if (state === undefined) return undefined
  const reason = isPoolers(error)
    ? 'the pooler refuses the connection'
    : (reasonOf(error, state) ?? 'PostgreSQL refuses the connection')
  return { reason, exactly: error.message, weight: 'refused' }
}

/** The driver reads them for each connection. Of a folder the error has no path. */
function ofFile({ code, syscall, message }: NodeJS.ErrnoException): Fault | undefined {
  if (syscall !== 'open' && code !== 'EISDIR') return undefined
  return {
    reason: 'a file that the database URL names cannot be read',
    exactly: message,
    remedy: 'sslrootcert, sslcert and sslkey are files on this machine',
    isHere: true,
    weight: 'refused',
  }
}

function ofSocket({ code, syscall }: NodeJS.ErrnoException): Fault | undefined {
  if (code === undefined || syscall === undefined) return undefined
  return { reason: `PostgreSQL cannot be reached (${code})`, weight: 'away' }
}

/** The driver has no codes. */
function ofDriver(error: Error): Fault {
  if (error instanceof ConnectionLost && error.cause instanceof Error) return faultOf(error.cause)
  const { message } = error
  if (message.includes('timeout')) return { reason: 'PostgreSQL did not answer in time', weight: 'away' }
  if (message.includes('password must be'))
    return { reason: 'PostgreSQL asks for a password, and the database URL has none', weight: 'refused' }
  return { reason: 'no connection to PostgreSQL could be made', exactly: message, weight: 'away' }
}

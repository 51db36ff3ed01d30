import { StoreRefused, StoreUnavailable } from '../../../handoff/store.ts'

/** The connection to the server is lost, or the server did not answer in time. */
export class ConnectionLost extends Error {
  override name = 'ConnectionLost'
}

const CONFLICTS = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '55P03', // lock_not_available
])

/** Also if default_transaction_read_only is on: hosted PostgreSQL switches that on when its disk is full. */
const READ_ONLY = '25006'

const SESSION_IS_OVER = new Set([
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P05', // idle_session_timeout
  '25P03', // idle_in_transaction_session_timeout
  '25P04', // transaction_timeout
  READ_ONLY, // read_only_sql_transaction: another host may take writes
])

const SERVER_IS_UNABLE = new Map([
  ['57P03', 'PostgreSQL is starting or stopping'],
  ['57014', 'PostgreSQL did not answer in time'],
  ['53000', 'PostgreSQL is out of resources'],
  ['53200', 'PostgreSQL is out of memory'],
  ['53300', 'PostgreSQL has no free connection'],
  ['53400', 'PostgreSQL has reached a configured limit'],
  ['58000', 'PostgreSQL reported a system error'],
  ['58030', 'PostgreSQL reported an I/O error'],
  ['28P01', 'PostgreSQL refuses the password'],
  ['28000', 'PostgreSQL refuses the user'],
  ['3D000', 'the database does not exist'],
])

const REFUSED_NAMES = new Set([
  '26000', // invalid_sql_statement_name
  '42P05', // duplicate_prepared_statement
])

const DISK_FULL = '53100'
const NOT_ALLOWED = '42501'

/** Undefined for errors that did not come from the server: the EPIPE of a socket looks like an SQLSTATE. */
export function sqlState(error: unknown): string | undefined {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException
  return code !== undefined && syscall === undefined && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

export const isNotAllowed = (error: unknown): boolean => sqlState(error) === NOT_ALLOWED

/** A pooler has assigned another session. PostgreSQL says so before it executes anything. */
export const isRefusedName = (error: unknown): boolean => REFUSED_NAMES.has(sqlState(error) ?? '')

/** in_failed_sql_transaction: says only that an earlier statement failed. */
export const isConsequence = (error: unknown): boolean => sqlState(error) === '25P02'

/** division_by_zero: a statement divides by the number of rows found, to abort its transaction. */
export const foundNoRow = (error: unknown): boolean => sqlState(error) === '22012'

export function isSessionOver(error: unknown): boolean {
  return error instanceof ConnectionLost || SESSION_IS_OVER.has(sqlState(error) ?? '') || isPoolerError(error)
}

/** Class 08: PgBouncer ends sessions with 08P01. From PostgreSQL itself that code is not fatal. */
export function isPoolerError(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: string }
  return severity === 'FATAL' && sqlState(error)?.startsWith('08') === true
}

export function asUnavailable(error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error
  const state = sqlState(error)
  if (state === DISK_FULL) {
    return new StoreUnavailable('store_full', 'the disk of PostgreSQL is full; nothing was stored', {
      cause: error,
    })
  }
  const reason = reasonOf(error, state) ?? 'PostgreSQL could not carry out a statement'
  return new StoreUnavailable('store_unavailable', `${reason}; the request can be sent again`, {
    cause: error,
  })
}

/** For the operator who starts the service: what is wrong, where, and what to check. */
export function asRefused(error: unknown, where: string): unknown {
  const cause = error instanceof StoreUnavailable ? (error.cause ?? error) : error
  const state = sqlState(cause)
  if (state === NOT_ALLOWED) {
    const { message } = cause as Error
    return new StoreRefused(
      `PostgreSQL at ${where} does not allow this user to create tables (${message}); grant the user CREATE on the database`,
      { cause },
    )
  }
  const reason = isPoolerError(cause)
    ? `the pooler reports: ${(cause as Error).message}`
    : reasonOf(cause, state)
  if (reason === undefined) return error
  return new StoreRefused(`${reason}; check the database URL and PostgreSQL at ${where}`, { cause })
}

/** What is wrong with the server or the connection; undefined for other errors. */
export function reasonOf(error: unknown, state: string | undefined): string | undefined {
  if (state === READ_ONLY)
    return 'PostgreSQL accepts no writes: default_transaction_read_only is on for this user, database or server, or the server has become a standby'
  if (isSessionOver(error)) return 'the connection to PostgreSQL was lost'
  if (CONFLICTS.has(state ?? ''))
    return 'PostgreSQL could not complete the transaction because of concurrent transactions'
  if (state !== undefined) return SERVER_IS_UNABLE.get(state)
  const { code, syscall } = error as NodeJS.ErrnoException
  if (code !== undefined && syscall !== undefined) return `PostgreSQL cannot be reached (${code})`
  return undefined
}

export async function orUnavailable<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw asUnavailable(error)
  }
}

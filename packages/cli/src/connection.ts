import {
  BatonClient,
  type BatonClientOptions,
  type FailedTry,
  ProblemError,
  type Violation,
} from '@baton/client'
import { checkInstanceId, DEFAULT_TABLE_FIELD, MAX_PAGE_LENGTH } from '@baton/protocol/core'
import type { Arguments, Flag, Flags } from './command-line.ts'
import { UsageError } from './errors.ts'
import { remark } from './terminal.ts'

/** The time limit of one request. */
export const LONGEST_REQUEST_SECONDS = 30

/** The address of the service, and the identity of the caller. */
export const placeFlags = {
  url: {
    kind: 'text',
    placeholder: 'URL',
    variable: 'BATON_URL',
    default: 'http://127.0.0.1:7070',
    description: 'base URL of the service; several URLs, separated by commas, for several nodes',
  },
  token: {
    kind: 'text',
    placeholder: 'TOKEN',
    variable: 'BATON_TOKEN',
    description: 'token of the service; prefer the variable, which other users cannot see',
  },
  'instance-id': {
    kind: 'text',
    placeholder: 'NAME',
    variable: 'BATON_INSTANCE_ID',
    description: 'instance name of this client',
  },
  'table-field': {
    kind: 'text',
    placeholder: 'NAME',
    variable: 'BATON_TABLE_FIELD',
    default: DEFAULT_TABLE_FIELD,
    description: 'JSON name of the table field, as configured in the service',
  },
} satisfies Flags

/** The flags of every command that sends requests to a service and exits. */
export const connectionFlags = {
  ...placeFlags,
  timeout: {
    kind: 'number',
    placeholder: 'SECONDS',
    default: 30,
    fractions: true,
    description: `how long to retry while the service is unavailable, and to wait for one answer, up to ${LONGEST_REQUEST_SECONDS}; 0 tries once`,
  },
  json: { kind: 'switch', description: 'print JSON, including errors' },
} satisfies Flags

export function connect(given: Arguments, more: Partial<BatonClientOptions> = {}): BatonClient {
  const token = given.text('token')
  const instanceId = given.text('instance-id')
  const named = instanceId === undefined ? undefined : checkInstanceId(instanceId)
  if (named?.ok === false) throw new UsageError(`${given.sourceOf('instance-id')} ${named.detail}`)
  const { retryForSeconds = given.numberOrDefault('timeout') } = more
  try {
    return new BatonClient({
      // A comma may be part of a path. Only a comma that is followed by a URL separates.
      url: urlOf(given).split(/,\s*(?=https?:\/\/)/),
      ...(token === undefined ? {} : { token }),
      ...(instanceId === undefined ? {} : { instanceId }),
      tableField: given.textOrDefault('table-field'),
      retryForSeconds,
      // Without retries, the single request has its full time.
      timeoutSeconds: Math.min(retryForSeconds || LONGEST_REQUEST_SECONDS, LONGEST_REQUEST_SECONDS),
      onFailure: sayOnce(given, retryForSeconds),
      ...more,
    })
  } catch (error) {
    throw new UsageError((error as Error).message.replace(/^url(?= )/, given.sourceOf('url')))
  }
}

/**
 * Reports the first failed try at once: otherwise a command that is waiting for an unavailable service looks
 * busy.
 */
function sayOnce(given: Arguments, retryForSeconds: number): (failed: FailedTry) => void {
  let said = false
  return ({ error }) => {
    if (said) return
    said = true
    remark(given, `${error.message}; retrying for up to ${retryForSeconds} s`)
  }
}

/** The URL of the service, for child processes. */
export function urlOf(given: Arguments): string {
  return given.textOrDefault('url')
}

/** For every command with a limited list: continues where the previous list ended. */
export const cursorFlag: Flag = {
  kind: 'text',
  placeholder: 'NEXT',
  description: 'continue an earlier list: the cursor that it printed, or `next` in its JSON',
}

interface Pages {
  /** Where an earlier list ended. */
  readonly cursor?: string | undefined
  readonly limit?: number
}

/** Reads pages until there are no more, or `limit` rows were read. `name` is that of the rows in a page. */
export async function readPages<Name extends string, Row>(
  name: Name,
  read: (page: {
    readonly cursor: string | undefined
    readonly limit: number
  }) => Promise<{ readonly next: string | null } & Readonly<Record<Name, readonly Row[]>>>,
  { cursor, limit = Number.POSITIVE_INFINITY }: Pages = {},
): Promise<{ rows: Row[]; next: string | null }> {
  const rows: Row[] = []
  let next = cursor ?? null
  do {
    // A page may have fewer rows than requested although more follow: the service bounds the rows it reads.
    const left = Math.min(limit - rows.length, MAX_PAGE_LENGTH)
    const page = await read({ cursor: next ?? undefined, limit: left })
    rows.push(...page[name])
    next = page.next
  } while (next !== null && rows.length < limit)
  return { rows, next }
}

/** The note below a truncated list. */
export function moreText(ways: string, cursor: string): string {
  return `there are more: use ${ways}, or continue with --cursor ${cursor}`
}

/** Maps what was sent to what the user wrote. */
export interface Origin {
  /**
   * A line of a file, or a name on the command line. `undefined` if the pointer itself is the best
   * description.
   */
  readonly placeOf: (pointer: string) => string | undefined
  /** Rewrites a fault that mentions other positions. */
  readonly inItsTerms?: (detail: string) => string
  /** A hint for all faults together, if no single fault is enough to explain them. */
  readonly hintFor?: (errors: readonly Violation[]) => string | undefined
}

/**
 * A problem whose pointers refer to the request, with the way to translate them for users who never saw the
 * request.
 */
export class LocatedProblem extends Error {
  override name = 'LocatedProblem'
  readonly problemError: ProblemError
  readonly origin: Origin

  constructor(problemError: ProblemError, origin: Origin) {
    super(problemError.message)
    this.problemError = problemError
    this.origin = origin
  }
}

/** What to do when a request failed: wraps problems of the service, and throws other errors unchanged. */
export const located =
  (origin: Origin) =>
  (error: unknown): never => {
    throw error instanceof ProblemError ? new LocatedProblem(error, origin) : error
  }

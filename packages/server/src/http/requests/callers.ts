import type { IncomingHttpHeaders } from 'node:http'

/** Who sends a request, as its token says. */
export interface Caller {
  readonly name: string
  readonly roles: ReadonlySet<string>
  /** Prefixes of task ids that it is limited to; null for no limit. */
  readonly tasks: readonly string[] | null
  /** Compute tables that it is limited to; null for no limit. */
  readonly tables: readonly string[] | null
}

/** Who callers are. A service without tokens knows nobody. */
export interface Callers {
  /**
   * Null where no token is asked for, and nowhere else: it throws a problem where the token of a request was revoked since it
   * was admitted, so that nobody takes it for somebody without limits.
   */
  of(headers: IncomingHttpHeaders): Caller | null
  /** The name of the token, for those who only tell of it; null where there is none that is valid. */
  nameOf(headers: IncomingHttpHeaders): string | null
  /** Calls `end` when the token of the request is revoked. The function that is returned stops that. */
  watch(headers: IncomingHttpHeaders, end: () => void): () => void
}

export const nobody: Callers = {
  of: () => null,
  nameOf: () => null,
  watch: () => () => undefined,
}

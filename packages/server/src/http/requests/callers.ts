import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { remembered } from './remembered.ts'

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

export const anonymous: Callers = {
  of: () => null,
  nameOf: () => null,
  watch: () => () => undefined,
}

/** The token of an Authorization header; undefined when it has none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
}

/** Whom an idempotency key belongs to, by the headers of a request and the instance that they name. */
export type KeyOwner = (headers: IncomingHttpHeaders, instance: string | null) => string

const byInstance: KeyOwner = (_, instance) => (instance === null ? 'anyone' : `instance ${instance}`)

/**
 * By the name of the token, so that a repeat with another token of the same name is one. Without tokens an instance is only
 * a name, but one that workers do not share.
 */
export function keyOwners(callers: Callers | null): KeyOwner {
  return callers === null ? byInstance : (headers) => `token ${callers.of(headers)?.name ?? ''}`
}

/** Of one length for all owners, so that no key of one can be spelt as a key of another. */
const MARK_LENGTH = 22
const markOf = remembered((owner) => hash('sha256', owner, 'base64url').slice(0, MARK_LENGTH))

/** The key under which a store keeps what was handed out. The mark is at its end: keys in order of time stay in order. */
export function ownedKey(key: string, owner: string): string {
  return `${key}.${markOf(owner)}`
}

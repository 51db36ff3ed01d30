import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { remembered } from './remembered.ts'

/** The sender of a request, as identified by its token. */
export interface Caller {
  readonly name: string
  readonly roles: ReadonlySet<string>
  /** Prefixes of task ids to which the token is limited; null for no limit. */
  readonly tasks: readonly string[] | null
  /** Compute tables to which the token is limited; null for no limit. */
  readonly tables: readonly string[] | null
}

/** Identifies callers. In a service without tokens, all callers are anonymous. */
export interface Callers {
  /**
   * Returns null only in a service without tokens. Throws a problem if the token was revoked after admission,
   * because null would mean a caller without limits.
   */
  of(headers: IncomingHttpHeaders): Caller | null
  /** The name of the token, for logs and counts; null without a valid token. */
  nameOf(headers: IncomingHttpHeaders): string | null
  /** Calls `end` when the token of the request is revoked. The returned function cancels that. */
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

/** Returns the owner of an idempotency key, from the headers of a request and the instance that they name. */
export type KeyOwner = (headers: IncomingHttpHeaders, instance: string | null) => string

const byInstance: KeyOwner = (_, instance) => (instance === null ? 'anyone' : `instance ${instance}`)

/**
 * With tokens, the owner is the name of the token, so that a retry with another token of the same name finds
 * the key. Without tokens it is the instance, whose name is not verified but not shared by workers.
 */
export function keyOwners(callers: Callers | null): KeyOwner {
  return callers === null ? byInstance : (headers) => `token ${callers.of(headers)?.name ?? ''}`
}

/** The same length for all owners, so that keys of different owners cannot collide. */
const MARK_LENGTH = 22
const markOf = remembered((owner) => hash('sha256', owner, 'base64url').slice(0, MARK_LENGTH))

/**
 * The key under which the store keeps handed-out leases. The owner's mark is a suffix, so that time-ordered
 * keys stay ordered.
 */
export function ownedKey(key: string, owner: string): string {
  return `${key}.${markOf(owner)}`
}

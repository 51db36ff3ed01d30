import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Callers } from './callers.ts'
import { remembered } from './remembered.ts'

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

import { hash, timingSafeEqual } from 'node:crypto'

export const roles = ['producer', 'worker', 'operator', 'viewer'] as const
export type Role = (typeof roles)[number]

export interface KnownToken {
  readonly digest: Buffer
  readonly roles: ReadonlySet<Role>
}

export class Tokens {
  readonly #known: readonly KnownToken[]

  constructor(known: readonly KnownToken[]) {
    this.#known = known
  }

  /** All are compared, whole digests each: how long it takes says nothing about what a token looks like. */
  rolesOf(token: string): ReadonlySet<Role> | undefined {
    const digest = digestOf(token)
    let found: ReadonlySet<Role> | undefined
    for (const known of this.#known) if (timingSafeEqual(known.digest, digest)) found = known.roles
    return found
  }
}

export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

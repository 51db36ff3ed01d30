import { randomFillSync } from 'node:crypto'
import { SECRET_BYTES } from './rules/lease-id.ts'

const POOL_BYTES = SECRET_BYTES * 512

/**
 * Random secrets for leases. Drawn from a pool, because requesting a few bytes from the system for every
 * lease is slow; see the bench scenario `one-by-one`.
 */
export class Secrets {
  readonly #pool = Buffer.alloc(POOL_BYTES)
  #used = POOL_BYTES

  next(): string {
    if (this.#used === POOL_BYTES) {
      randomFillSync(this.#pool)
      this.#used = 0
    }
    this.#used += SECRET_BYTES
    return this.#pool.toString('base64url', this.#used - SECRET_BYTES, this.#used)
  }
}

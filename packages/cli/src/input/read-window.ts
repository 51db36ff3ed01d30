import type { ReadValue } from './values.ts'

/**
 * The descriptors that are on their way. What the service has answered for is forgotten, so that the size of a file
 * does not matter: faults only ever point into the request under way.
 */
export class ReadWindow {
  #first = 0
  #reads: ReadValue[] = []

  add(read: ReadValue): void {
    this.#reads.push(read)
  }

  /** So many descriptors, from the first one on, are done with. */
  forget(count: number): void {
    this.#reads = this.#reads.slice(count - this.#first)
    this.#first = count
  }

  at(position: number): ReadValue | undefined {
    return this.#reads[position - this.#first]
  }
}

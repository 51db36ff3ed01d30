/**
 * The lines of the descriptors that are on their way. What the service has answered for is forgotten, so that the
 * size of a file does not matter: faults only ever point into the request under way.
 */
export class LineWindow {
  #first = 0
  #lines: number[] = []

  add(line: number): void {
    this.#lines.push(line)
  }

  /** So many descriptors, from the first one on, are done with. */
  forget(count: number): void {
    this.#lines = this.#lines.slice(count - this.#first)
    this.#first = count
  }

  lineOf(position: number): number | undefined {
    return this.#lines[position - this.#first]
  }
}

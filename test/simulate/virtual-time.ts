interface Event {
  readonly at: number
  /** Events of the same time run in the order in which they were scheduled. */
  readonly order: number
  readonly happen: () => void
}

/**
 * A virtual clock that jumps to the next scheduled event. Events run in a fixed order, without timers or
 * randomness.
 */
export class VirtualTime {
  now = 0
  readonly #heap: Event[] = []
  #order = 0

  after(millis: number, happen: () => void): void {
    this.#order += 1
    this.#push({ at: this.now + millis, order: this.#order, happen })
  }

  /** Runs the earliest event. False if nothing is scheduled. */
  next(): boolean {
    const event = this.#pop()
    if (event === undefined) return false
    this.now = event.at
    event.happen()
    return true
  }

  /** Resolves once no other promise can continue, without an iteration of the event loop. */
  settled(): Promise<void> {
    return new Promise(process.nextTick)
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const up = (at - 1) >> 1
      const parent = heap[up] as Event
      if (isBefore(parent, event)) break
      heap[at] = parent
      at = up
    }
    heap[at] = event
  }

  #pop(): Event | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || first === last) return first
    let at = 0
    while (true) {
      let down = 2 * at + 1
      if (down >= heap.length) break
      if (down + 1 < heap.length && isBefore(heap[down + 1] as Event, heap[down] as Event)) down += 1
      const child = heap[down] as Event
      if (isBefore(last, child)) break
      heap[at] = child
      at = down
    }
    heap[at] = last
    return first
  }
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Its index in the heap, or -1. */
export interface InHeap {
  heapIndex: number
}

/** A binary heap whose items know their index, so that any of them can be moved or removed. */
export class Heap<Item extends InHeap> {
  /** The first item is the smallest; the others are in heap order. */
  readonly items: Item[] = []
  readonly #compare: (a: Item, b: Item) => number

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare
  }

  get first(): Item | undefined {
    return this.items[0]
  }

  get size(): number {
    return this.items.length
  }

  /** Adds an item, or moves it to its place after it changed. */
  put(item: Item): void {
    if (item.heapIndex < 0) item.heapIndex = this.items.push(item) - 1
    this.#sift(item)
  }

  remove(item: Item): void {
    const index = item.heapIndex
    if (index < 0) return
    const last = this.items.pop() as Item
    item.heapIndex = -1
    if (last === item) return
    this.items[index] = last
    last.heapIndex = index
    this.#sift(last)
  }

  /** The first items, in order, at most `count`. They stay. */
  inOrder(count: number): Item[] {
    const { items } = this
    const found: Item[] = []
    const next = new Heap<Place>((a, b) => this.#compare(items[a.index] as Item, items[b.index] as Item))
    const add = (index: number) => {
      if (index < items.length) next.put({ index, heapIndex: -1 })
    }
    add(0)
    for (let first = next.first; first !== undefined && found.length < count; first = next.first) {
      next.remove(first)
      found.push(items[first.index] as Item)
      add(2 * first.index + 1)
      add(2 * first.index + 2)
    }
    return found
  }

  #sift(item: Item): void {
    const { items } = this
    let index = item.heapIndex
    while (index > 0) {
      const up = (index - 1) >> 1
      const parent = items[up] as Item
      if (this.#compare(parent, item) <= 0) break
      items[index] = parent
      parent.heapIndex = index
      index = up
    }
    while (true) {
      let down = 2 * index + 1
      if (down >= items.length) break
      if (down + 1 < items.length && this.#compare(items[down + 1] as Item, items[down] as Item) < 0)
        down += 1
      const child = items[down] as Item
      if (this.#compare(item, child) <= 0) break
      items[index] = child
      child.heapIndex = index
      index = down
    }
    items[index] = item
    item.heapIndex = index
  }
}

interface Place extends InHeap {
  readonly index: number
}

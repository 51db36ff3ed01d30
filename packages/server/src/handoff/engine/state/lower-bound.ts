/** The index of the first item of a sorted list that is not before the key; its length if there is none. */
export function lowerBound<Item, Key>(
  sorted: readonly Item[],
  key: Key,
  compare: (item: Item, key: Key) => number,
): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compare(sorted[middle] as Item, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

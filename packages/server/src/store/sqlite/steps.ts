import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work that stops at each `yield`, so that whoever runs it can let others have a turn. */
export type Steps<Result> = Generator<undefined, Result>

/** The longest that work in steps keeps the event loop before others have a turn, give or take a step. */
const TURN_MILLIS = 4

// biome-ignore lint/correctness/useYield: for work that is done in one go where others may take several.
export function* inOneStep<Result>(work: () => Result): Steps<Result> {
  return work()
}

/** Rows of a step where each is looked up or written: a millisecond or two. */
export const ROWS_OF_A_STEP = 100

/** The loop over a step's items is not in the generator itself: there it made batches 3 to 5 % slower. */
export function* oneByOne<Item>(items: readonly Item[], work: (item: Item, at: number) => void): Steps<void> {
  for (let from = 0; from < items.length; from += ROWS_OF_A_STEP) {
    if (from > 0) yield
    stepThrough(items, from, work)
  }
}

function stepThrough<Item>(
  items: readonly Item[],
  from: number,
  work: (item: Item, at: number) => void,
): void {
  const end = Math.min(from + ROWS_OF_A_STEP, items.length)
  for (let at = from; at < end; at += 1) work(items[at] as Item, at)
}

export function atOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

export async function turnByTurn<Result>(steps: Steps<Result>): Promise<Result> {
  while (true) {
    const turnEnds = performance.now() + TURN_MILLIS
    do {
      const step = steps.next()
      if (step.done === true) return step.value
    } while (performance.now() < turnEnds)
    await nextTurn()
  }
}

/** What becomes of `work`, or of `late` when it takes longer than so many milliseconds; then it goes on unwatched. */
export async function withTimeout<Result>(
  work: Promise<Result>,
  millis: number,
  late: () => Result,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const given = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, millis)
  })
  try {
    return await Promise.race([work, given.then(late)])
  } finally {
    clearTimeout(timer)
  }
}

/** Milliseconds since the epoch. Jumps when the machine's clock is set. Injected, so that tests decide what time it is. */
export type WallClock = () => number

export const systemClock: WallClock = () => Date.now()

/** Milliseconds since some moment or other: only the time between two readings counts, and no clock that is set changes it. */
export type Stopwatch = () => number

export const systemStopwatch: Stopwatch = () => performance.now()

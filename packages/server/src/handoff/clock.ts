/** Returns the result of `work`, or of `late` after a timeout. `work` is not cancelled then. */
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

/** Unix time in milliseconds. Jumps when the clock of the machine is set. */
export type WallClock = () => number

/** Monotonic milliseconds from an arbitrary start. */
export type Stopwatch = () => number

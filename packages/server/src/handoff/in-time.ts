/** What becomes of `work`, or of `late` when it takes longer than so many milliseconds; then it goes on unwatched. */
export async function inTime<Result>(
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

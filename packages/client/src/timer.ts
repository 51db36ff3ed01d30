/** Timers count up to here, which is 24.8 days. One that is set to more goes off at once. */
const LONGEST_TIMER_MILLIS = 2 ** 31 - 1

/** A timer for a time that the program chose. What is longer than a timer can count never comes, like Infinity. */
export function timer(act: () => void, millis: number): ReturnType<typeof setTimeout> | undefined {
  return millis <= LONGEST_TIMER_MILLIS ? setTimeout(act, millis) : undefined
}

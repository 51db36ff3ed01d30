/** Milliseconds since the epoch. Jumps when the machine's clock is set. Injected, so that tests decide what time it is. */
export type WallClock = () => number

export const systemClock: WallClock = () => Date.now()

/** Milliseconds since some moment or other: only the time between two readings counts, and no clock that is set changes it. */
export type Stopwatch = () => number

export const systemStopwatch: Stopwatch = () => performance.now()

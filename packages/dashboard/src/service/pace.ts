/** A pace falls while nothing happens, and of nothing there are no events: so often it is asked for again. */
export const PACE_IS_FRESH_MILLIS = 10_000

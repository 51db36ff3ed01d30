/** The trace of a request: the one that all its elements share, or none. */
export function sharedTrace(traceparents: readonly (string | undefined)[]): string | undefined {
  const [first] = traceparents
  return traceparents.every((one) => one === first) ? first : undefined
}

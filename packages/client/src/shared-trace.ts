/** A request belongs to one trace: that of all it is about, or none. */
export function sharedTrace(traceparents: readonly (string | undefined)[]): string | undefined {
  const [first] = traceparents
  return traceparents.every((one) => one === first) ? first : undefined
}

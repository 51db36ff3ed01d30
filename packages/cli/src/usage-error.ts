/** The command line makes no sense; the text says what to type instead. */
export class UsageError extends Error {
  override name = 'UsageError'
}

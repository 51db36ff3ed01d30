/** Something in a file or on stdin is not what it should be; each line names its place. */
export class InputError extends Error {
  override name = 'InputError'
  readonly lines: readonly string[]
  /** What to do about it, where the lines do not say. */
  readonly hint: string | undefined

  constructor(lines: readonly string[], hint?: string) {
    super(lines[0] ?? 'the input is not what it should be')
    this.lines = lines
    this.hint = hint
  }
}

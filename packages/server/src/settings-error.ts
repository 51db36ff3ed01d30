/** A setting or command line is invalid. Each line is a complete message; no stack trace is shown. */
export class SettingsError extends Error {
  override name = 'SettingsError'
  readonly lines: readonly string[]
  /** By convention, 2 for an invalid command line and 1 for invalid values. */
  readonly exitCode: 1 | 2

  constructor(lines: readonly string[], exitCode: 1 | 2 = 1) {
    super(lines.join('; '))
    this.lines = lines
    this.exitCode = exitCode
  }
}

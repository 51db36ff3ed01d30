/** What a person typed or set cannot be used. Each line stands by itself; there is never a stack to show. */
export class SettingsError extends Error {
  override name = 'SettingsError'
  readonly lines: readonly string[]
  /** By custom: 2 for a command line that cannot be read, 1 for values that cannot be used. */
  readonly exitCode: 1 | 2

  constructor(lines: readonly string[], exitCode: 1 | 2 = 1) {
    super(lines.join('; '))
    this.lines = lines
    this.exitCode = exitCode
  }
}

import type { Arguments } from './arguments.ts'
import type { Flags } from './flag.ts'

export interface Example {
  readonly line: string
  readonly says: string
}

export interface Command {
  readonly hasOwnLine?: false
  /** The operands as shown in the help, for example `TASK`. */
  readonly operands: string
  /** The minimum and maximum number of operands. */
  readonly operandCount: readonly [least: number, most: number]
  readonly details: string
  readonly flags: Flags
  readonly examples: readonly Example[]
  /** Everything after `--` is a command to run. */
  readonly takesCommand?: boolean
  /** Also accepts operands before `--`. */
  readonly operandsBeforeCommand?: boolean
  /** Returns the exit code. */
  readonly run: (given: Arguments) => Promise<number>
}

/** A command that parses its command line itself. It has its own flags, help and exit codes. */
export interface CommandWithOwnLine {
  readonly hasOwnLine: true
  /**
   * The flags that a shell can complete. Loaded on demand, because running the command does not need them.
   */
  readonly completedFlags: () => Promise<Flags>
  readonly run: (argv: readonly string[]) => Promise<number>
}

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** Loaded on demand, so that the help does not wait for the client to load. */
  readonly load: () => Promise<Command | CommandWithOwnLine>
}

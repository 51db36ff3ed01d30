import type { Arguments } from './arguments.ts'
import type { Flags } from './flag.ts'

export interface Example {
  readonly line: string
  readonly says: string
}

export interface Command {
  readonly hasOwnLine?: false
  /** The words after the name, as in `TASK`. */
  readonly operands: string
  /** How many operands may be given. */
  readonly operandCount: readonly [least: number, most: number]
  readonly details: string
  readonly flags: Flags
  readonly examples: readonly Example[]
  /** Everything after `--` belongs to the command itself. */
  readonly takesCommand?: boolean
  /** It also takes operands before `--`. */
  readonly operandsBeforeCommand?: boolean
  /** Answers the exit code. */
  readonly run: (given: Arguments) => Promise<number>
}

/** One that reads its command line itself: flags, help and exit codes are its own. */
export interface CommandWithOwnLine {
  readonly hasOwnLine: true
  /** What a shell can complete. Told on demand: whoever runs it need not load that. */
  readonly completedFlags: () => Promise<Flags>
  readonly run: (argv: readonly string[]) => Promise<number>
}

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** Loaded only when needed: the help should not wait for the client to load. */
  readonly load: () => Promise<Command | CommandWithOwnLine>
}

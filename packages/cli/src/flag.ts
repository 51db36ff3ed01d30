/** The maximum of a flag that sets a timer. Timers above 24 days fire at once. */
export const LONGEST_TIMER_SECONDS = 86_400

/** A flag of a command. Its name is its key, with hyphens. */
export interface Flag {
  readonly kind: 'switch' | 'text' | 'number'
  /** The placeholder of the value in the help: `N`, `SECONDS`. */
  readonly placeholder?: string
  readonly description: string
  readonly short?: string
  /** The environment variable that is read if the flag is absent. */
  readonly variable?: string
  /** The default value, shown in the help and returned by `Arguments`. */
  readonly default?: string | number
  /** Describes the behaviour without the flag, if there is no default value. Shown in the help. */
  readonly otherwise?: string
  readonly choices?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly fractions?: boolean
  /** Whether the flag may be given several times. Other flags with a value may not. */
  readonly repeatable?: boolean
}

export type Flags = Readonly<Record<string, Flag>>

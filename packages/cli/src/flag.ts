/** The most seconds for a flag that a timer counts: one that is set to more than 24 days goes off at once. */
export const LONGEST_TIMER_SECONDS = 86_400

/** A flag of a command; its name is its key, with hyphens. */
export interface Flag {
  readonly kind: 'switch' | 'text' | 'number'
  /** What stands for the value in the help: `N`, `SECONDS`. */
  readonly placeholder?: string
  readonly description: string
  readonly short?: string
  /** The environment variable that is read when the flag is absent. */
  readonly variable?: string
  /** What it is without being given: the help says it, and `Arguments` falls back to it. */
  readonly default?: string | number
  /** What happens without it, where that is no value: words for the help. */
  readonly otherwise?: string
  readonly choices?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly fractions?: boolean
  /** Whether it may be given several times; any other that takes a value may not. */
  readonly repeatable?: boolean
}

export type Flags = Readonly<Record<string, Flag>>

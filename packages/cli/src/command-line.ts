import { parseArgs } from 'node:util'
import { didYouMean } from '@baton/protocol/core'
import { UsageError } from './errors.ts'

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

/** The values given for a flag, in order. */
interface Value {
  /** The source to name in an error message: the flag, or the environment variable used in its place. */
  readonly from: string
  readonly texts: readonly string[]
}

type Values = ReadonlyMap<string, Value>

/**
 * The arguments from the command line and from environment variables, checked against the flags of the
 * command.
 */
export class Arguments {
  readonly operands: readonly string[]
  /** The arguments after `--`. */
  readonly command: readonly string[]
  readonly #values: Values
  readonly #flags: Flags

  private constructor(operands: readonly string[], command: readonly string[], values: Values, flags: Flags) {
    this.operands = operands
    this.command = command
    this.#values = values
    this.#flags = flags
  }

  static read(
    flags: Flags,
    argv: readonly string[],
    takesCommand: boolean,
    operandsBeforeCommand = false,
  ): Arguments {
    const cut = takesCommand ? argv.indexOf('--') : -1
    const own = cut === -1 ? argv : argv.slice(0, cut)
    const { values: typed, operands } = readTokens(flags, own, takesCommand && !operandsBeforeCommand)
    const values = new Map([...inherited(flags), ...typed])
    const given = new Arguments(operands, cut === -1 ? [] : argv.slice(cut + 1), values, flags)
    for (const name of values.keys()) given.#check(name)
    return given
  }

  switch(name: string): boolean {
    return this.#values.has(name)
  }

  text(name: string): string | undefined {
    return this.#values.get(name)?.texts[0]
  }

  /** All values of a repeatable flag. */
  texts(name: string): readonly string[] {
    return this.#values.get(name)?.texts ?? []
  }

  number(name: string): number | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : numberOf(this.sourceOf(name), this.#flags[name], text)
  }

  textOrDefault(name: string): string {
    return this.text(name) ?? String(this.#defaultOf(name))
  }

  numberOrDefault(name: string): number {
    return this.number(name) ?? Number(this.#defaultOf(name))
  }

  /** The source to name in an error message about a flag: a user who set a variable never typed the flag. */
  sourceOf(name: string): string {
    return this.#values.get(name)?.from ?? `--${name}`
  }

  #defaultOf(name: string): string | number {
    const value = this.#flags[name]?.default
    if (value === undefined) throw new TypeError(`--${name} has no default`)
    return value
  }

  #check(name: string): void {
    const flag = this.#flags[name]
    const source = this.sourceOf(name)
    const [text = '', ...others] = this.texts(name)
    if (others.length > 0 && flag?.kind !== 'switch' && flag?.repeatable !== true) {
      throw new UsageError(`${source} must not be repeated`)
    }
    if (flag?.kind === 'number') numberOf(source, flag, text)
    const wrong = this.texts(name).find((one) => flag?.choices?.includes(one) === false)
    if (wrong !== undefined) {
      throw new UsageError(
        `${source} must be one of ${flag?.choices?.join(', ')}, got ${JSON.stringify(wrong)}`,
      )
    }
  }
}

/**
 * Reads the environment variables of the flags. An empty variable counts as absent, so that a script can
 * unset one for a single command.
 */
function inherited(flags: Flags): Map<string, Value> {
  const values = new Map<string, Value>()
  for (const [name, { variable }] of Object.entries(flags)) {
    const text = variable === undefined ? undefined : process.env[variable]
    if (variable !== undefined && text) values.set(name, { from: variable, texts: [text] })
  }
  return values
}

function readTokens(flags: Flags, argv: readonly string[], refusesOperands: boolean) {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { kind, short }]) => [
      name,
      { type: kind === 'switch' ? ('boolean' as const) : ('string' as const), ...(short && { short }) },
    ]),
  )
  // Not strict, because the error messages of parseArgs are written for programmers.
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true })
  const values = new Map<string, Value>()
  const operands: string[] = []
  for (const token of tokens) {
    // The arguments after it belong to that command, but would be parsed as flags of baton.
    if (token.kind === 'positional' && refusesOperands) {
      throw new UsageError(`put -- before the command ${JSON.stringify(token.value)}`)
    }
    if (token.kind === 'positional') operands.push(token.value)
    else if (token.kind === 'option') {
      const text = textOf(token.rawName, flags[token.name], token.value, flags)
      const before = values.get(token.name)?.texts ?? []
      values.set(token.name, { from: `--${token.name}`, texts: [...before, text] })
    }
  }
  return { values, operands }
}

function textOf(rawName: string, flag: Flag | undefined, value: string | undefined, flags: Flags): string {
  if (flag === undefined) {
    const meant = didYouMean(
      rawName,
      Object.keys(flags).map((name) => `--${name}`),
    )
    throw new UsageError(
      `${rawName} is not a flag of this command${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    )
  }
  if (flag.kind === 'switch') {
    if (value !== undefined) throw new UsageError(`${rawName} does not accept a value`)
    return 'true'
  }
  if (value === undefined) throw new UsageError(`${rawName} requires a value`)
  return value
}

function numberOf(source: string, flag: Flag | undefined, text: string): number {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER, fractions = false } = flag ?? {}
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  const isValid = fractions ? Number.isFinite(number) : Number.isSafeInteger(number)
  if (!isValid || number < minimum || number > maximum) {
    const range =
      maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`
    throw new UsageError(
      `${source} must be ${fractions ? 'a number' : 'an integer'} ${range}, got ${JSON.stringify(text)}`,
    )
  }
  return number
}

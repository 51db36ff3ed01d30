import { parseArgs } from 'node:util'
import { didYouMean } from '@baton/protocol'
import type { Command, Flag, Flags } from './command.ts'
import { UsageError } from './usage-error.ts'

/** What stood behind each flag, in order. */
type Values = ReadonlyMap<string, readonly string[]>

/** What was given on the command line, checked against the flags of the command. */
export class Arguments {
  readonly operands: readonly string[]
  /** What stood after `--`. */
  readonly command: readonly string[]
  readonly #values: Values
  readonly #flags: Flags

  private constructor(operands: readonly string[], command: readonly string[], values: Values, flags: Flags) {
    this.operands = operands
    this.command = command
    this.#values = values
    this.#flags = flags
  }

  static read(command: Command, flags: Flags, argv: readonly string[]): Arguments {
    const cut = command.takesCommand === true ? argv.indexOf('--') : -1
    const own = cut === -1 ? argv : argv.slice(0, cut)
    const { values, operands } = readTokens(flags, own)
    const given = new Arguments(operands, cut === -1 ? [] : argv.slice(cut + 1), values, flags)
    for (const name of values.keys()) given.#check(name)
    return given
  }

  switch(name: string): boolean {
    return this.#values.has(name)
  }

  text(name: string): string | undefined {
    const variable = this.#flags[name]?.variable
    const inherited = variable === undefined ? undefined : process.env[variable]
    return this.#values.get(name)?.[0] ?? (inherited === '' ? undefined : inherited)
  }

  /** All that a flag was given that may be given several times. */
  texts(name: string): readonly string[] {
    return this.#values.get(name) ?? []
  }

  number(name: string): number | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : numberOf(name, this.#flags[name], text)
  }

  #check(name: string): void {
    const flag = this.#flags[name]
    const [text = '', ...others] = this.#values.get(name) ?? []
    if (others.length > 0 && flag?.kind !== 'switch' && flag?.repeatable !== true) {
      throw new UsageError(`--${name} was given twice`)
    }
    if (flag?.kind === 'number') numberOf(name, flag, text)
    if (flag?.choices !== undefined && !flag.choices.includes(text)) {
      throw new UsageError(`--${name} is one of ${flag.choices.join(', ')}, not ${JSON.stringify(text)}`)
    }
  }
}

function readTokens(flags: Flags, argv: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { kind, short }]) => [
      name,
      { type: kind === 'switch' ? ('boolean' as const) : ('string' as const), ...(short && { short }) },
    ]),
  )
  // Not strict: its words for what is wrong are for programmers.
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true })
  const values = new Map<string, string[]>()
  const operands: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    else if (token.kind === 'option') {
      const text = textOf(token.rawName, flags[token.name], token.value, flags)
      values.set(token.name, [...(values.get(token.name) ?? []), text])
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
      `${rawName} is not a flag here${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    )
  }
  if (flag.kind === 'switch') {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`)
    return 'true'
  }
  if (value === undefined) throw new UsageError(`${rawName} needs a value`)
  return value
}

function numberOf(name: string, flag: Flag | undefined, text: string): number {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER, fractions = false } = flag ?? {}
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  const sound = fractions ? Number.isFinite(number) : Number.isSafeInteger(number)
  if (!sound || number < minimum || number > maximum) {
    const range =
      maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`
    throw new UsageError(
      `--${name} is a ${fractions ? '' : 'whole '}number ${range}, not ${JSON.stringify(text)}`,
    )
  }
  return number
}

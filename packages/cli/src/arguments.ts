import { parseArgs } from 'node:util'
import { didYouMean } from '@baton/protocol/core'
import { UsageError } from './errors.ts'
import type { Flag, Flags } from './flag.ts'

/** What a flag was given, in order. */
interface Value {
  /** What to call it in a complaint: the flag, or the variable that stood in for it. */
  readonly from: string
  readonly texts: readonly string[]
}

type Values = ReadonlyMap<string, Value>

/** What was given on the command line or by variables, checked against the flags of the command. */
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

  /** All that a flag was given that may be given several times. */
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

  /** What a complaint about a flag should name: whoever set a variable never typed the flag. */
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
      throw new UsageError(`${source} was given twice`)
    }
    if (flag?.kind === 'number') numberOf(source, flag, text)
    const wrong = this.texts(name).find((one) => flag?.choices?.includes(one) === false)
    if (wrong !== undefined) {
      throw new UsageError(`${source} is one of ${flag?.choices?.join(', ')}, not ${JSON.stringify(wrong)}`)
    }
  }
}

/** What variables give. An empty one counts as absent: that is how a script takes one away for a command. */
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
  // Not strict: its words for what is wrong are for programmers.
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true })
  const values = new Map<string, Value>()
  const operands: string[] = []
  for (const token of tokens) {
    // What follows are the flags of that command, and would be taken for ours.
    if (token.kind === 'positional' && refusesOperands) {
      throw new UsageError(`put -- before the command, which begins with ${JSON.stringify(token.value)}`)
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

function numberOf(source: string, flag: Flag | undefined, text: string): number {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER, fractions = false } = flag ?? {}
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  const sound = fractions ? Number.isFinite(number) : Number.isSafeInteger(number)
  if (!sound || number < minimum || number > maximum) {
    const range =
      maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`
    throw new UsageError(
      `${source} is a ${fractions ? '' : 'whole '}number ${range}, not ${JSON.stringify(text)}`,
    )
  }
  return number
}

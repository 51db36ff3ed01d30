/**
 * A number whose fraction JavaScript rounds away: 1.00000000000000000001 is parsed as 1, and 1e-400 as 0. It
 * takes the place of the number in the parsed value, and every schema rejects it.
 */
export class InexactNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** The value that JSON.parse returns, for values that are passed on unchanged. */
  toJSON(): number {
    return Number(this.text)
  }
}

/** A quick pre-check: a text that does not match has no fraction and no exponent. Most texts do not match. */
const FRACTION = /\d\.\d|\d[eE][-+\d]/
/** Numbers with many digits or with an exponent. A match may also be inside a string. */
const SUSPECTS = /(?:^|[:,[\s])(-?\d(?:[\d.]{16}|[\d.]*[eE])[-+.\deE]*)/g

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source: string }) => unknown

/** Like JSON.parse, but never rounds a number with a fraction to an integer. */
export function parseExactJson(text: string): unknown {
  if (!FRACTION.test(text) || !mayBeInexact(text)) return JSON.parse(text)
  const reviver: Reviver = (_key, value, { source }) =>
    typeof value === 'number' && isInexact(source) ? new InexactNumber(source) : value
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown)
}

/** With a reviver, parsing takes ten times as long. */
function mayBeInexact(text: string): boolean {
  for (const [, source = ''] of text.matchAll(SUSPECTS)) if (isInexact(source)) return true
  return false
}

/** Whether a number is parsed as an integer although it has a non-zero digit after its decimal point. */
function isInexact(source: string): boolean {
  if (!Number.isInteger(Number(source))) return false
  const [mantissa = '', exponent = '0'] = source.split(/[eE]/, 2)
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.', 2)
  /** The number of trailing digits that are after the decimal point. */
  const behind = fraction.length - Number(exponent)
  return behind > 0 && /[1-9]/.test((whole + fraction).slice(-behind))
}

/**
 * A number whose fraction JavaScript rounds away: 1.00000000000000000001 is read as 1, and 1e-400 as 0. It stands where the
 * number would, and no schema takes it for one.
 */
export class InexactNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** As JSON.parse reads it, for values that are passed on as they came. */
  toJSON(): number {
    return Number(this.text)
  }
}

/** Nothing that could be a fraction or an exponent: true of nearly every text, and quick to find out. */
const FRACTION = /\d\.\d|\d[eE][-+\d]/
/** Where a number may stand: one of many digits, or with an exponent. It may still be within a string. */
const SUSPECT = /(?:^|[:,[\s])-?\d(?:[\d.]{16}|[\d.]*[eE])/

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source: string }) => unknown

/** JSON.parse, except that a number which is no integer is never taken for one. */
export function parseExactJson(text: string): unknown {
  if (!FRACTION.test(text) || !SUSPECT.test(text)) return JSON.parse(text)
  const reviver: Reviver = (_key, value, { source }) =>
    typeof value === 'number' && Number.isInteger(value) && hasFraction(source)
      ? new InexactNumber(source)
      : value
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown)
}

/** Whether a number of JSON's form has other digits than zero behind its decimal point. */
function hasFraction(source: string): boolean {
  const [mantissa = '', exponent = '0'] = source.split(/[eE]/, 2)
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.', 2)
  /** So many of the last digits stand behind the point. */
  const behind = fraction.length - Number(exponent)
  return behind > 0 && /[1-9]/.test((whole + fraction).slice(-behind))
}

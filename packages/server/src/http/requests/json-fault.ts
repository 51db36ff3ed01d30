const LITERALS: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' }
/** All that JSON takes for one. */
const SPACE = ' \t\n\r'
const BEGINS_A_VALUE = /["{[\-0-9tfn]/
/** Behind these, and at the beginning, a value has to follow. */
const BEFORE_A_VALUE = '[:,'

const ESCAPED = '"\\/bfnrtu'

/**
 * Where a text in which V8 met an unexpected token has it, or undefined. V8 tells the place of every other fault, but not of
 * a value that is none, such as NaN or a comma too many, nor of an escape that is none and not ASCII. So this looks only for
 * values and escapes, and takes the rest to be right.
 */
export function placeOfUnexpected(text: string): number | undefined {
  let before = ''
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (SPACE.includes(character)) continue
    const isAwaited = before === '' || BEFORE_A_VALUE.includes(before)
    const isEmptyArray = before === '[' && character === ']'
    if (isAwaited && !isEmptyArray && !BEGINS_A_VALUE.test(character)) return at
    const literal = LITERALS[character]
    if (literal !== undefined) {
      const departs = [...literal].findIndex((letter, offset) => text.charAt(at + offset) !== letter)
      if (departs !== -1) return at + departs
      at += literal.length - 1
    } else if (character === '"') {
      const end = endOfString(text, at)
      const fault = wrongEscape(text, at, end)
      if (fault !== undefined) return fault
      at = end
    }
    before = character
  }
  return undefined
}

/** The position of the closing quotation mark. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1
  return at
}

function wrongEscape(text: string, start: number, end: number): number | undefined {
  for (let at = start + 1; at < end; at += 1) {
    if (text.charAt(at) !== '\\') continue
    at += 1
    if (!ESCAPED.includes(text.charAt(at))) return at
  }
  return undefined
}

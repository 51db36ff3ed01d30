export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${truncated(text, length - 1)}…`
}

/** Does not split a surrogate pair: half a character cannot be stored. */
export function truncated(text: string, length: number): string {
  if (text.length <= length) return text
  return text.slice(0, isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length)
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

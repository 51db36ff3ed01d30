const MOST_REMEMBERED = 10_000
/** Longer texts are unusual in headers, and would fill the memory. */
const LONGEST_REMEMBERED = 256

/** Memoizes a function of a header value: parsing them is the most expensive part of this layer. */
export function remembered<Value>(
  read: (text: string) => Value,
  longest = LONGEST_REMEMBERED,
): (text: string) => Value {
  const known = new Map<string, Value>()
  return (text) => {
    const value = known.get(text)
    if (value !== undefined) return value
    const fresh = read(text)
    if (fresh === undefined || text.length > longest) return fresh
    if (known.size >= MOST_REMEMBERED) known.clear()
    known.set(text, fresh)
    return fresh
  }
}

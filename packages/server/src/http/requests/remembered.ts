const MOST_REMEMBERED = 10_000
/** Longer texts are nobody's usual header, and would fill the memory. */
const LONGEST_REMEMBERED = 256

/**
 * Remembers what reading a text came to. Clients repeat the same few header values with each request, and reading
 * them anew costs more than the rest of the request's way through this layer.
 */
export function remembered<Value>(read: (text: string) => Value): (text: string) => Value {
  const known = new Map<string, Value>()
  return (text) => {
    const value = known.get(text)
    if (value !== undefined) return value
    const fresh = read(text)
    if (text.length > LONGEST_REMEMBERED) return fresh
    if (known.size >= MOST_REMEMBERED) known.clear()
    known.set(text, fresh)
    return fresh
  }
}

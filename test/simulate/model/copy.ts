/** A deep copy of a model. Objects keep their classes; what several refer to is still the same object. */
export function copy<Value>(value: Value, copies = new Map<unknown, unknown>()): Value {
  if (typeof value !== 'object' || value === null) return value
  const known = copies.get(value)
  if (known !== undefined) return known as Value
  if (value instanceof Map) {
    const map = new Map()
    copies.set(value, map)
    for (const [key, one] of value) map.set(copy(key, copies), copy(one, copies))
    return map as Value
  }
  if (value instanceof Set) {
    const set = new Set()
    copies.set(value, set)
    for (const one of value) set.add(copy(one, copies))
    return set as Value
  }
  const made = Array.isArray(value) ? [] : Object.create(Object.getPrototypeOf(value))
  copies.set(value, made)
  for (const name of Object.keys(value)) made[name] = copy(value[name as keyof Value], copies)
  return made
}

/** Another seed each time. It is in the title of the test, so that a run can be repeated. */
export const fuzzSeed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 32))

/** A small pseudo-random number generator: the same seed gives the same test. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to just below `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }
}

/** Values that often break programs. */
const awkward: readonly unknown[] = [
  null,
  true,
  '',
  ' ',
  '\u0000',
  '\ud800',
  '😀'.repeat(300),
  'x'.repeat(5000),
  '__proto__',
  'constructor',
  '-0',
  '1e3',
  0,
  -1,
  -0,
  0.5,
  1e21,
  1e308,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_SAFE_INTEGER + 1,
  2 ** 63,
  [],
  {},
  [[]],
  [null],
  { toString: 1 },
]

type Parent = Record<string, unknown> | unknown[]

function places(value: unknown, found: [Parent, string | number][] = []): [Parent, string | number][] {
  if (typeof value !== 'object' || value === null) return found
  for (const key of Object.keys(value)) {
    found.push([value as Parent, Array.isArray(value) ? Number(key) : key])
    places((value as Record<string, unknown>)[key], found)
  }
  return found
}

/** Changes a valid body in one to three places of its structure. */
export function mutateValue(body: unknown, dice: Dice): unknown {
  let mutated = structuredClone(body)
  for (let times = dice.below(3); times >= 0; times -= 1) {
    const found = places(mutated)
    if (found.length === 0 || dice.below(20) === 0) {
      mutated = dice.pick(awkward)
      continue
    }
    const [parent, key] = dice.pick(found)
    const holder = parent as Record<string | number, unknown>
    switch (dice.below(5)) {
      case 0:
        if (Array.isArray(parent)) parent.splice(Number(key), 1)
        else delete holder[key]
        break
      case 1:
        if (Array.isArray(parent)) parent.push(structuredClone(holder[key]))
        else holder[`${key}${dice.pick(['', 's', '_', ' '])}`] = holder[key]
        break
      case 2:
        holder[key] = structuredClone(dice.pick(found.map(([other, at]) => (other as typeof holder)[at])))
        break
      default:
        holder[key] = structuredClone(dice.pick(awkward))
    }
  }
  return mutated
}

/** Changes bytes of a body: flips, truncates, duplicates and inserts. */
export function mutateBytes(body: string, dice: Dice): Buffer {
  let bytes = Buffer.from(body)
  for (let times = dice.below(4); times >= 0; times -= 1) {
    const at = dice.below(bytes.length + 1)
    switch (dice.below(4)) {
      case 0:
        if (at < bytes.length) bytes[at] = dice.below(256)
        break
      case 1:
        bytes = bytes.subarray(0, at)
        break
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(dice.below(at + 1))])
        break
      default: {
        const inserted = dice.pick([
          '"',
          '\\',
          '{',
          '[',
          ']',
          ',',
          ':',
          '\u0000',
          '\ufeff',
          '1e999',
          '\\ud800',
          'ÿ',
        ])
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(inserted), bytes.subarray(at)])
      }
    }
  }
  return bytes
}

export function randomBytes(dice: Dice): Buffer {
  return Buffer.from(Array.from({ length: dice.below(200) }, () => dice.below(256)))
}

import { brokenRule, didYouMean } from './field-faults.ts'

/**
 * The settings of a task and their allowed values. Kept apart from the schemas: clients need not load the
 * schema library.
 */
export const settingKeywords = {
  leaseSeconds: {
    type: 'number',
    minimum: 0.001,
    maximum: 43_200,
    description: 'How long a lease runs',
    examples: [600],
  },
  maxAttempts: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    description: 'Attempts at a partition before it is parked',
    examples: [5],
  },
  backoffSeconds: {
    type: 'number',
    minimum: 0,
    maximum: 86_400,
    description: 'How long a partition waits after its first failure; doubles with each further one',
    examples: [10],
  },
  backoffMaxSeconds: {
    type: 'number',
    minimum: 0,
    maximum: 86_400,
    description: 'The longest that it waits',
    examples: [600],
  },
  levelBarrier: {
    type: 'boolean',
    description: 'Whether a level waits until all lower ones are finished',
    examples: [true],
  },
  maxLeases: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    description: 'The most partitions of the task that are leased at a time; null: no limit',
    examples: [16],
  },
  weight: {
    type: 'number',
    minimum: 0.01,
    maximum: 100,
    description:
      'Its share against other tasks on the same level: with 2 it gets twice the records of one with 1',
    examples: [2],
  },
} as const

export type SettingName = keyof typeof settingKeywords

/** The name of a setting in a header and on a command line. */
export const settingWord = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

export const settingNames = Object.keys(settingKeywords) as SettingName[]
const byWord = new Map(settingNames.map((name) => [settingWord(name), name]))

/** Parses the Task-Settings header of a call-back: `lease-seconds=600, max-leases=16`. */
export function readTaskSettings(
  header: string,
): { ok: true; settings: Partial<Record<SettingName, number | boolean>> } | { ok: false; detail: string } {
  const settings: Partial<Record<SettingName, number | boolean>> = {}
  for (const item of header.split(',')) {
    const [word = '', text = '', ...others] = item.split('=').map((part) => part.trim())
    const name = byWord.get(word.toLowerCase())
    if (name === undefined) {
      const meant = didYouMean(word.toLowerCase(), [...byWord.keys()])
      const advice =
        meant === undefined ? `there are ${[...byWord.keys()].join(', ')}` : `did you mean ${meant}?`
      return { ok: false, detail: `${JSON.stringify(word)} is not a setting of a task; ${advice}` }
    }
    if (name in settings) return { ok: false, detail: `${word} must be given once` }
    const value = settingValue(name, text)
    const rule = others.length > 0 ? 'must have one value' : brokenRule(settingKeywords[name], value)
    if (rule !== undefined) return { ok: false, detail: `${word} ${rule}, got ${JSON.stringify(text)}` }
    settings[name] = value as number | boolean
  }
  return { ok: true, settings }
}

function settingValue(name: SettingName, text: string): unknown {
  if (settingKeywords[name].type === 'boolean')
    return text === 'true' ? true : text === 'false' ? false : text
  return /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
}

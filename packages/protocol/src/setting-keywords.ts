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
    description: 'Length of a lease in seconds',
    examples: [600],
  },
  maxAttempts: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    description: 'Number of attempts before a partition is parked',
    examples: [5],
  },
  backoffSeconds: {
    type: 'number',
    minimum: 0,
    maximum: 86_400,
    description:
      'Back-off after the first failure of a partition, in seconds; doubles with each further failure',
    examples: [10],
  },
  backoffMaxSeconds: {
    type: 'number',
    minimum: 0,
    maximum: 86_400,
    description: 'Maximum back-off in seconds',
    examples: [600],
  },
  levelBarrier: {
    type: 'boolean',
    description: 'Whether each level waits until all lower levels are finished',
    examples: [true],
  },
  maxLeases: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    description: 'Maximum number of partitions of the task that are leased at a time; null for no limit',
    examples: [16],
  },
  weight: {
    type: 'number',
    minimum: 0.01,
    maximum: 100,
    description:
      'Share of the task relative to other tasks on the same level: a task with weight 2 gets twice the records of a task with weight 1',
    examples: [2],
  },
  pauseAfterFailures: {
    type: 'object',
    description:
      'The task pauses itself when at least this share of its last attempts failed or expired; null for never',
    examples: [{ share: 0.5, of: 20 }],
  },
} as const

/** The members of `pauseAfterFailures`. In a header and on a command line they are one text: `0.5/20`. */
export const pauseAfterFailuresKeywords = {
  share: {
    type: 'number',
    minimum: 0.001,
    maximum: 1,
    description: 'The share of the attempts',
    examples: [0.5],
  },
  of: {
    type: 'integer',
    minimum: 1,
    maximum: 1000,
    description: 'The number of attempts that are looked at',
    examples: [20],
  },
} as const

export type SettingName = keyof typeof settingKeywords

/** The name of a setting in a header and on a command line. */
export const settingWord = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Marked so that pages, which use only the functions beside it, do not load the keywords. */
export const settingNames = /* @__PURE__ */ Object.keys(settingKeywords) as SettingName[]

export type SettingValue = number | boolean | { readonly share: number; readonly of: number } | null
type NamedSettings = Partial<Record<SettingName, SettingValue>>

/** Parses the Task-Settings header of a call-back: `lease-seconds=600, max-leases=null`. */
export function readTaskSettings(
  header: string,
): { ok: true; settings: NamedSettings } | { ok: false; detail: string } {
  const byWord = new Map(settingNames.map((name) => [settingWord(name), name]))
  const settings: NamedSettings = {}
  for (const item of header.split(',')) {
    const [word = '', text = '', ...others] = item.split('=').map((part) => part.trim())
    const name = byWord.get(word.toLowerCase())
    if (name === undefined) {
      const meant = didYouMean(word.toLowerCase(), [...byWord.keys()])
      const advice =
        meant === undefined ? `the settings are ${[...byWord.keys()].join(', ')}` : `did you mean ${meant}?`
      return { ok: false, detail: `${JSON.stringify(word)} is not a setting of a task; ${advice}` }
    }
    if (name in settings) return { ok: false, detail: `${word} must not be repeated` }
    const value = settingValue(name, text)
    const rule = others.length > 0 ? 'must have exactly one value' : brokenSetting(name, value)
    if (rule !== undefined) return { ok: false, detail: `${word} ${rule}, got ${JSON.stringify(text)}` }
    settings[name] = value as SettingValue
  }
  return { ok: true, settings }
}

function brokenSetting(name: SettingName, value: unknown): string | undefined {
  const { type } = settingKeywords[name]
  if (type !== 'object') return brokenRule({ ...settingKeywords[name], type: [type, 'null'] }, value)
  if (value === null) return undefined
  if (typeof value !== 'object') return 'must be a share and a number of attempts, such as 0.5/20, or null'
  for (const [member, rules] of Object.entries(pauseAfterFailuresKeywords)) {
    const rule = brokenRule(rules, (value as Record<string, unknown>)[member])
    if (rule !== undefined) return `must be SHARE/OF, and ${member} ${rule}`
  }
  return undefined
}

/** The value of a setting as a header and a command line have it. */
export const settingText = (value: SettingValue): string =>
  typeof value === 'object' && value !== null ? `${value.share}/${value.of}` : String(value)

/** `0.5/20`. Undefined if it is not of this form. */
export function readPauseAfterFailures(text: string): { share: number; of: number } | undefined {
  const [, share, of] = /^(\d+(?:\.\d+)?)\/(\d+)$/.exec(text) ?? []
  return share === undefined ? undefined : { share: Number(share), of: Number(of) }
}

function settingValue(name: SettingName, text: string): unknown {
  if (text === 'null') return null
  if (name === 'pauseAfterFailures') return readPauseAfterFailures(text) ?? text
  if (settingKeywords[name].type === 'boolean')
    return text === 'true' ? true : text === 'false' ? false : text
  return /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
}

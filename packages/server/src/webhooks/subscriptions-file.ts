import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { subscribeRequestSchema, webhookEventTypes } from '@baton/protocol'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/schema'
import type { Log } from '../handoff/log.ts'
import { type DefinedSubscription, MAX_SUBSCRIPTIONS } from '../handoff/outbox.ts'
import {
  changedNames,
  type FileContent,
  formFaults,
  openToOthers,
  type PlainFault,
  ReloadedFile,
  readJsonFile,
  SettingsError,
  schemaFaults,
} from '../settings-files.ts'
import { type AddressRule, receiverUrlFault } from './address-rule.ts'
import { isSigningSecret } from './signed-event.ts'

const NAME = 'the subscriptions file'

const closed = { additionalProperties: false }
const fileSchema = Type.Object(
  { subscriptions: Type.Array(Type.Unknown(), { maxItems: MAX_SUBSCRIPTIONS }) },
  closed,
)
const { types, taskPrefix } = subscribeRequestSchema.properties
const subscriptionSchema = Type.Object(
  {
    name: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' }),
    url: Type.String({ minLength: 1, maxLength: 2000 }),
    types,
    taskPrefix,
    secret: Type.Optional(Type.String({ minLength: 1 })),
    secretFile: Type.Optional(Type.String({ minLength: 1 })),
    secretEnv: Type.Optional(Type.String({ minLength: 1 })),
  },
  closed,
)
type Entry = Static<typeof subscriptionSchema>

const FORM =
  '{"subscriptions":[{"name","url","types"?:[…],"taskPrefix"?,"secret" or "secretFile" or "secretEnv"}]}'
const inPlainWords: readonly PlainFault[] = [
  { of: /^\/name$/, fault: 'must be 1 to 100 letters, digits, dots, hyphens or underscores' },
  { of: /^\/types\/\d+$/, fault: `must be one of ${webhookEventTypes.join(', ')}` },
]

interface SubscriptionsFileOptions {
  readonly rule: AddressRule
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Throws a SettingsError with all faults of the file. It does not quote the content, which has secrets. */
export function readSubscriptionsFile(
  path: string,
  options: SubscriptionsFileOptions,
  reads: (path: string) => void = () => undefined,
): FileContent<readonly DefinedSubscription[]> {
  const content = readJsonFile(path, NAME)
  const refuse = (faults: readonly string[]) =>
    new SettingsError(faults.map((fault) => `${NAME} ${path} ${fault}`))
  if (!Check(fileSchema, content))
    throw refuse(formFaults(schemaFaults(fileSchema, content, '', inPlainWords), FORM))
  const { subscriptions } = content
  const departing = subscriptions.flatMap((one, at) =>
    schemaFaults(subscriptionSchema, one, `/subscriptions/${at}`, inPlainWords),
  )
  const faults: string[] = []
  const names = new Set<string>()
  const defined: DefinedSubscription[] = []
  for (const [at, entry] of subscriptions.entries()) {
    if (!Check(subscriptionSchema, entry)) continue
    const place = `/subscriptions/${at}`
    if (names.has(entry.name))
      faults.push(`is invalid at ${place}/name, which is also the name of another subscription`)
    names.add(entry.name)
    const urlFault = receiverUrlFault(entry.url, options.rule)
    if (urlFault !== undefined) faults.push(`is invalid at ${place}/url, which ${urlFault}`)
    if (entry.secretFile !== undefined) reads(resolve(dirname(path), entry.secretFile))
    const secret = secretOf(entry, path, options)
    if ('fault' in secret) faults.push(`is invalid at ${place}${secret.fault}`)
    else defined.push(definedBy(entry, secret.text))
  }
  if (departing.length + faults.length > 0) throw refuse([...formFaults(departing, FORM), ...faults])
  const isInClear = subscriptions.some((entry) => (entry as Entry).secret !== undefined)
  return { value: defined, warnings: isInClear ? openToOthers(path, NAME) : [] }
}

function definedBy({ name, url: receiver, types: wanted, taskPrefix: prefix }: Entry, secret: string) {
  return {
    name,
    url: receiver,
    types: webhookEventTypes.filter((type) => wanted === undefined || wanted.includes(type)),
    taskPrefix: prefix ?? '',
    secret,
  }
}

type Secret = { readonly text: string } | { readonly fault: string }

function secretOf(entry: Entry, path: string, { env }: SubscriptionsFileOptions): Secret {
  const { secret, secretFile, secretEnv } = entry
  if ([secret, secretFile, secretEnv].filter((one) => one !== undefined).length !== 1)
    return { fault: ', which must have exactly one of secret, secretFile and secretEnv' }
  if (secret !== undefined) return checked(secret, '/secret, which')
  if (secretEnv !== undefined) {
    const text = env[secretEnv]
    if (text === undefined) return { fault: '/secretEnv, which names a variable that is not set' }
    return checked(text, '/secretEnv, which names a variable that')
  }
  try {
    const text = readFileSync(resolve(dirname(path), secretFile ?? ''), 'utf8')
    return checked(text, '/secretFile, which names a file that')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return { fault: `/secretFile, which names a file that cannot be read (${code})` }
  }
}

/** Whitespace around the secret is ignored, such as the line break at the end of a file. */
function checked(text: string, where: string): Secret {
  const secret = text.trim()
  if (isSigningSecret(secret)) return { text: secret }
  return { fault: `${where} must be whsec_ followed by 24 to 64 bytes in base64` }
}

/** If a changed file is invalid, the previous subscriptions stay in force. */
export type LiveSubscriptions = ReloadedFile<readonly DefinedSubscription[]>

export function openSubscriptionsFile(
  path: string,
  options: SubscriptionsFileOptions & { readonly log: Log },
): LiveSubscriptions {
  return new ReloadedFile({
    path,
    read: (_before, reads) => readSubscriptionsFile(path, options, reads),
    refusal: 'the changed subscriptions file is invalid; the previous subscriptions stay in force',
    changed: (before, now) => changedNames(byName(before), byName(now)) || 'no subscription changed',
    log: options.log,
  })
}

const byName = (subscriptions: readonly DefinedSubscription[]) =>
  new Map(subscriptions.map((one) => [one.name, JSON.stringify(one)]))

import type { IncomingHttpHeaders } from 'node:http'
import { descriptorSchema, MAX_CHOSEN, MAX_TASK_ID_LENGTH } from '@baton/protocol'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/schema'
import { EndCallbacks } from '../../handoff/end-callbacks.ts'
import type { Log } from '../../handoff/log.ts'
import { DEFAULT_OWNER_LIMITS } from '../../handoff/rules/open-work-limits.ts'
import {
  changedNames,
  type FileReload,
  formFaults,
  openToOthers,
  type PlainFault,
  ReloadedFile,
  readJsonFile,
  SettingsError,
  schemaFaults,
} from '../../settings-files.ts'
import { userOf } from './proxy-users.ts'
import {
  described,
  digestOf,
  type KnownGroup,
  type KnownToken,
  type Role,
  revoked,
  roles,
  type Token,
  type TokenLookup,
  Tokens,
} from './tokens.ts'

/** 128 random bits take 22 characters of base64url, or 32 hex digits. */
const SHORTEST_TOKEN = 22
/** A random token of that length almost certainly has at least this many different characters. */
const FEWEST_DIFFERENT = 8

function weakness(token: string): string | undefined {
  if (token.length < SHORTEST_TOKEN) return `is shorter than ${SHORTEST_TOKEN} characters and can be guessed`
  if (new Set(token).size < FEWEST_DIFFERENT)
    return `has fewer than ${FEWEST_DIFFERENT} different characters and can be guessed`
  return undefined
}

export { digestOf, roles }

const NAME = 'the tokens file'
const closed = { additionalProperties: false }
const fileSchema = Type.Object(
  {
    tokens: Type.Array(Type.Unknown(), { minItems: 1 }),
    groups: Type.Optional(Type.Array(Type.Unknown())),
  },
  closed,
)
/** Users see and control tasks. Programs call back and pull, with tokens. */
const groupRoles = ['operator', 'viewer'] as const satisfies readonly Role[]
const prefixes = Type.Array(Type.String({ minLength: 1, maxLength: MAX_TASK_ID_LENGTH }), { minItems: 1 })
const groupSchema = Type.Object(
  {
    group: Type.String({ minLength: 1, maxLength: 200 }),
    roles: Type.Array(Type.Unsafe<Role>({ type: 'string', enum: [...groupRoles] }), { minItems: 1 }),
    tasks: Type.Optional(prefixes),
  },
  closed,
)
const tokenSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 200 }),
    token: Type.Optional(Type.String({ pattern: '^[\\x21-\\x7e]+$' })),
    sha256: Type.Optional(Type.String({ pattern: '^[0-9a-fA-F]{64}$' })),
    roles: Type.Array(Type.Unsafe<Role>({ type: 'string', enum: [...roles] }), { minItems: 1 }),
    tasks: Type.Optional(prefixes),
    tables: Type.Optional(Type.Array(descriptorSchema().properties.computeTableName, { minItems: 1 })),
    maxWeight: Type.Optional(Type.Number({ minimum: 1 })),
    lowestLevel: Type.Optional(Type.Integer({ minimum: 0 })),
    maxOpenTasks: Type.Optional(Type.Integer({ minimum: 1 })),
    maxWaitingPartitions: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  closed,
)
/** Messages that replace those of the schema validator where the latter are hard to understand. */
const inPlainWords: readonly PlainFault[] = [
  {
    of: /^\/token$/,
    fault: 'must be one or more visible ASCII characters without spaces',
  },
  { of: /^\/sha256$/, fault: 'must be the 64 hex digits of a SHA-256' },
  { of: /^\/roles\/\d+$/, fault: `must be one of ${roles.join(', ')}` },
  { of: /^\/tables\/\d+$/, fault: 'must be a table in the form <schema>.<table>' },
]
const FORM = `{"tokens":[{"name","token" or "sha256","roles":[${roles.join('|')}],"tasks"?:[…],"tables"?:[…],"maxWeight"?,"lowestLevel"?,"maxOpenTasks"?,"maxWaitingPartitions"?}],"groups"?:[{"group","roles":[${groupRoles.join('|')}],"tasks"?:[…]}]}`

export interface TokensFile {
  readonly tokens: Tokens
  /** Problems that are logged but do not make the file invalid. */
  readonly warnings: readonly string[]
}

/** Throws a SettingsError that lists everything wrong with the file. */
export function readTokensFile(path: string): TokensFile {
  const read = tokensIn(contentOf(path), path)
  return { ...read, warnings: [...openToOthers(path, NAME), ...read.warnings] }
}

/** The parsed JSON of a tokens file, not validated. */
export const contentOf = (path: string): unknown => readJsonFile(path, NAME)

/** Validates the content of a tokens file that may not be written yet. */
export function tokensIn(content: unknown, path: string): TokensFile {
  const refuse = (faults: readonly string[]) =>
    new SettingsError(faults.map((fault) => `the tokens file ${path} ${fault}`))
  if (!Check(fileSchema, content))
    throw refuse(formFaults(schemaFaults(fileSchema, content, '', inPlainWords), FORM))
  const { tokens } = content
  const departing = tokens.flatMap((token, at) =>
    schemaFaults(tokenSchema, token, `/tokens/${at}`, inPlainWords),
  )
  const entries = tokens.filter((token) => Check(tokenSchema, token))
  const { known, faults } = tokensOf(entries)
  const { groups, ...ofGroups } = groupsIn(content.groups ?? [])
  departing.push(...ofGroups.departing)
  faults.push(...ofGroups.faults)
  if (departing.length + faults.length > 0) throw refuse([...formFaults(departing, FORM), ...faults])
  return { tokens: new Tokens(known, groups), warnings: inClear(path, entries) }
}

const groupWords: readonly PlainFault[] = [
  { of: /^\/roles\/\d+$/, fault: `of a group must be one of ${groupRoles.join(', ')}` },
]

function groupsIn(listed: readonly unknown[]) {
  const departing = listed.flatMap((group, at) =>
    schemaFaults(groupSchema, group, `/groups/${at}`, groupWords),
  )
  const entries = listed.filter((group) => Check(groupSchema, group))
  const names = entries.map(({ group }) => group)
  const twice = new Set(names.filter((group, at) => names.indexOf(group) !== at))
  const groups = entries.map(
    ({ group, roles: granted, tasks = null }): KnownGroup => ({
      group,
      name: `group ${group}`,
      digest: '',
      roles: new Set(granted),
      tasks,
      tables: null,
      ...producerLimits({}),
    }),
  )
  return { groups, departing, faults: [...twice].map((group) => `defines the group "${group}" twice`) }
}

type Entry = Static<typeof tokenSchema>

function tokensOf(entries: readonly Entry[]): { known: KnownToken[]; faults: string[] } {
  const seen = new Map<string, string>()
  const known: KnownToken[] = []
  const faults: string[] = []
  for (const entry of entries) {
    const { name, token, sha256, roles: granted, tasks = null, tables = null } = entry
    if ((token === undefined) === (sha256 === undefined)) {
      faults.push(`must define either token or sha256 for "${name}"`)
      continue
    }
    faults.push(...weakTokenFaults(entry), ...limitFaults(entry))
    const digest = token === undefined ? (sha256 ?? '').toLowerCase() : digestOf(token)
    const twin = seen.get(digest)
    if (twin === undefined) seen.set(digest, name)
    else faults.push(`defines the same token for "${twin}" and "${name}"`)
    known.push({ name, digest, roles: new Set(granted), tasks, tables, ...producerLimits(entry) })
  }
  return { known, faults }
}

type ProducerLimits = Pick<Token, 'maxWeight' | 'lowestLevel' | 'maxOpenTasks' | 'maxWaitingPartitions'>

const producerLimits = ({
  maxWeight = 1,
  lowestLevel = 0,
  maxOpenTasks = DEFAULT_OWNER_LIMITS.openTasks,
  maxWaitingPartitions = DEFAULT_OWNER_LIMITS.waitingPartitions,
}: Partial<ProducerLimits>): ProducerLimits => ({
  maxWeight,
  lowestLevel,
  maxOpenTasks,
  maxWaitingPartitions,
})

function weakTokenFaults({ name, token }: Entry): string[] {
  const weak = token === undefined ? undefined : weakness(token)
  if (weak === undefined) return []
  return [`defines a token for "${name}" that ${weak}: create one with \`baton token create\``]
}

/** Refuses limits that would not be enforced for the roles of the token. */
function limitFaults({ name, roles: granted, tasks, tables, ...entry }: Entry): string[] {
  const has = (...some: Role[]) => granted.some((role) => some.includes(role))
  const faults: string[] = []
  if (tables !== undefined && has('operator', 'viewer'))
    faults.push(
      `limits "${name}" to tables, but the roles operator and viewer apply to whole tasks: limit the token to tasks, or change its roles`,
    )
  if (tasks !== undefined && has('worker'))
    faults.push(
      `limits "${name}" to tasks, but the pulls of a worker cannot be limited to task prefixes: limit the token to tables, or remove the role worker`,
    )
  const unused = Object.keys(producerLimits({})).find((field) => field in entry)
  if (unused !== undefined && !has('producer'))
    faults.push(`sets ${unused} for "${name}", but only producers call back`)
  if (tables !== undefined && has('worker') && tables.length > MAX_CHOSEN)
    faults.push(
      `limits "${name}" to ${tables.length} tables, but a pull can select at most ${MAX_CHOSEN}: create several tokens`,
    )
  return faults
}

function inClear(path: string, entries: readonly Entry[]): string[] {
  const named = entries.filter(({ token }) => token !== undefined).map(({ name }) => `"${name}"`)
  if (named.length === 0) return []
  const whose = [...new Set(named)].join(', ')
  return [
    `the tokens file ${path} contains plaintext tokens (${whose}): replace "token" with "sha256", the SHA-256 of the token in hex`,
  ]
}

/** The tokens of the file; the previous ones if it is faulty. Streams and pulls of changed ones are ended. */
export class LiveTokens implements TokenLookup {
  readonly #file: ReloadedFile<Tokens>
  readonly #ends = new EndCallbacks<Token>()

  constructor(path: string, log: Log) {
    this.#file = new ReloadedFile<Tokens>({
      path,
      read: (before) => {
        const { tokens, warnings } = readTokensFile(path)
        return { value: before === undefined ? tokens : tokens.keeping(before), warnings }
      },
      refusal: 'the changed tokens file is invalid; the previous tokens stay valid',
      changed: (before, now) => changedNames(byName(before), byName(now)) || 'no token changed',
      log,
    })
    this.#file.onReload((reload) => {
      if (reload.outcome === 'refused') return
      for (const token of reload.before.all) if (!reload.now.has(token)) this.#ends.ended(token)
    })
  }

  find(headers: IncomingHttpHeaders): KnownToken | undefined {
    const user = userOf(headers)
    return user === undefined
      ? this.#tokens.ofHeader(headers.authorization)
      : this.#tokens.ofGroups(user.groups)
  }

  of(headers: IncomingHttpHeaders): KnownToken {
    const token = this.find(headers)
    if (token === undefined) throw revoked()
    const user = userOf(headers)
    return user === undefined ? token : { ...token, name: user.name }
  }

  nameOf(headers: IncomingHttpHeaders): string | null {
    return userOf(headers)?.name ?? this.#tokens.ofHeader(headers.authorization)?.name ?? null
  }

  onReload(listener: (reload: FileReload<Tokens>) => void): void {
    this.#file.onReload(listener)
  }

  watch(headers: IncomingHttpHeaders, end: () => void): () => void {
    const token = this.find(headers)
    // The token was revoked after the request was admitted.
    if (token === undefined) {
      end()
      return () => undefined
    }
    return this.#ends.add(token, end)
  }

  close(): void {
    this.#file.close()
  }

  get #tokens(): Tokens {
    return this.#file.current
  }
}

/** Several tokens may have one name. */
const byName = ({ all }: Tokens) =>
  new Map(
    [...Map.groupBy(all, ({ name }) => name)].map(([name, tokens]) => [
      name,
      tokens.map(described).sort().join(),
    ]),
  )

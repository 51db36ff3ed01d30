import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import {
  checkIdempotencyKey,
  checkInstanceId,
  MAX_BATCH,
  type Preferences,
  parsePrefer,
  readPreference,
} from '@baton/protocol'
import type { PullRequest } from '../../handoff/store.ts'
import type { TokenLookup } from '../admission/tokens.ts'
import { invalidRequest, RequestProblem } from '../answers/problems.ts'
import { remembered } from '../remembered.ts'
import { chosenNames, isEncoded, unknownParameter } from './parameters.ts'

const readInstanceId = remembered((text: string): string => {
  const checked = checkInstanceId(decoded(text))
  if (checked.ok) return checked.instanceId
  throw invalidRequest(`X-Instance-Id ${checked.detail}`)
})

export function instanceOf(headers: IncomingHttpHeaders): string | null {
  const text = headers['x-instance-id']
  return text === undefined ? null : readInstanceId(String(text))
}

/** Node decodes headers as Latin-1. UTF-8 is decoded again here, so that the name is the same as in a URL. */
function decoded(text: string): string {
  if (!/[\x80-\xff]/.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : text
}

/** Returns the owner of an idempotency key, from the headers of a request and the instance that they name. */
export type KeyOwner = (headers: IncomingHttpHeaders, instance: string | null) => string

const byInstance: KeyOwner = (_, instance) => (instance === null ? 'anyone' : `instance ${instance}`)

/** The name of the token, which retries share, or else the instance, whose name is not verified. */
export function keyOwners(tokens: TokenLookup | null): KeyOwner {
  return tokens === null ? byInstance : (headers) => `token ${tokens.of(headers)?.name ?? ''}`
}

/** The same length for all owners, so that keys of different owners cannot collide. */
const MARK_LENGTH = 22
const markOf = remembered((owner) => hash('sha256', owner, 'base64url').slice(0, MARK_LENGTH))

/** The key in the store. The owner's mark is a suffix, so that time-ordered keys stay ordered. */
export function ownedKey(key: string, owner: string): string {
  return `${key}.${markOf(owner)}`
}

/** The key that identifies a pull, so that a retry does not lease twice. */
function readIdempotencyKey(text: string | undefined): string | null {
  if (text === undefined) return null
  const checked = checkIdempotencyKey(text)
  if (checked.ok) return checked.idempotencyKey
  throw invalidRequest(`Idempotency-Key ${checked.detail}`)
}

/** The query of a pull, or of a settle that pulls: how much to lease, and from which tables and tasks. */
interface PullQuery {
  readonly preferences: Omit<Preferences, 'applied' | 'fault'>
  readonly tables: readonly string[] | null
  readonly tasks: readonly string[] | null
}

const NO_QUERY: PullQuery = { preferences: {}, tables: null, tasks: null }

const amounts = { batch: 'batch', records: 'records', wait: 'waitSeconds' } as const
const known = ['table', 'task', ...Object.keys(amounts)]

/** Ignoring a filter would lease partitions to a worker that cannot process them. */
function parsePullQuery(text: string): PullQuery {
  if (text === '') return NO_QUERY
  if (!isEncoded(text))
    throw new RequestProblem('bad_request', 'the query is not validly percent-encoded UTF-8')
  const given = new URLSearchParams(text)
  const preferences: { -readonly [Name in keyof PullQuery['preferences']]: number } = {}
  for (const name of new Set(given.keys())) {
    if (!known.includes(name)) throw unknownParameter(name, known)
    if (!(name in amounts)) continue
    const [value = '', ...others] = given.getAll(name)
    if (others.length > 0) throw invalidRequest(`${name} must not be repeated`)
    const read = readPreference(name as keyof typeof amounts, value)
    if (!read.ok) throw invalidRequest(read.detail)
    preferences[amounts[name as keyof typeof amounts]] = read.value
  }
  return {
    preferences,
    tables: chosenNames('table', given.getAll('table')),
    tasks: chosenNames('task', given.getAll('task')),
  }
}

const readPreferences = remembered((text: string): Preferences => {
  const preferences = parsePrefer(text)
  if (preferences.fault === undefined) return preferences
  throw invalidRequest(`Prefer: ${preferences.fault}`)
})
const readPullQuery = remembered(parsePullQuery)
const noPreferences: Preferences = { applied: '' }

/** Adds the amounts of the query. An amount that is given in both places is ambiguous and refused. */
function withQuery(preferred: Preferences, { preferences }: PullQuery): Preferences {
  for (const [name, field] of Object.entries(amounts))
    if (preferred[field] !== undefined && preferences[field] !== undefined)
      throw invalidRequest(`${name} is in both the query and the Prefer header; send it once`)
  return { ...preferred, ...preferences }
}

/** What a pull or settle says beside its body. Parsed lazily, once for all requests with the same head. */
export class PullHead {
  readonly headers: IncomingHttpHeaders
  readonly #keyOwner: KeyOwner
  readonly #query: string
  /** Parsed once: a long one is not remembered. */
  #parsedQuery: PullQuery | undefined
  readonly #key: string | undefined
  #instance: string | null | undefined
  #owner: string | undefined
  #preferences: Preferences | undefined
  #pull: PullRequest | undefined

  constructor(
    headers: IncomingHttpHeaders,
    keyOwner: KeyOwner,
    query = '',
    key = headers['idempotency-key']?.toString(),
  ) {
    this.headers = headers
    this.#keyOwner = keyOwner
    this.#query = query
    this.#key = key
  }

  underKey(key: string): PullHead {
    const head = new PullHead(this.headers, this.#keyOwner, this.#query, key)
    head.#instance = this.#instance
    head.#owner = this.#owner
    head.#preferences = this.#preferences
    head.#parsedQuery = this.#parsedQuery
    return head
  }

  /** The length of the query, which a waiting pull keeps in memory. */
  get queryLength(): number {
    return this.#query.length
  }

  get instance(): string | null {
    this.#instance ??= instanceOf(this.headers)
    return this.#instance
  }

  get preferences(): Preferences {
    if (this.#preferences === undefined) {
      const text = this.headers['prefer']
      const preferred = text === undefined ? noPreferences : readPreferences(String(text))
      this.#preferences = this.#query === '' ? preferred : withQuery(preferred, this.#given)
    }
    return this.#preferences
  }

  /** Whether the query names tables or tasks. */
  get chooses(): boolean {
    const { tables, tasks } = this.#given
    return tables !== null || tasks !== null
  }

  /** Validates the key even if nothing is pulled, because a client that sends a key relies on it. */
  checkKey(): void {
    readIdempotencyKey(this.#key)
  }

  get pull(): PullRequest {
    if (this.#pull !== undefined) return this.#pull
    const { batch, records } = this.preferences
    const { tables, tasks } = this.#given
    this.#pull = {
      instance: this.instance,
      // If only `records` is given, it alone limits the number of partitions.
      batch: batch ?? (records === undefined ? 1 : MAX_BATCH),
      records: records ?? null,
      key: this.#ownedKey,
      tables,
      tasks,
      waitMillis: (this.preferences.waitSeconds ?? 0) * 1000,
    }
    return this.#pull
  }

  get #given(): PullQuery {
    this.#parsedQuery ??= this.#query === '' ? NO_QUERY : readPullQuery(this.#query)
    return this.#parsedQuery
  }

  get #ownedKey(): string | null {
    const key = readIdempotencyKey(this.#key)
    if (key === null) return null
    this.#owner ??= this.#keyOwner(this.headers, this.instance)
    return ownedKey(key, this.#owner)
  }
}

export function queryOf(url: string): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}

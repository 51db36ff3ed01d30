import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Problem, RequestProblem } from '../answers/problems.ts'
import { remembered } from '../remembered.ts'

/** What is known about the sender of a request from its token. */
export interface Token {
  readonly name: string
  readonly roles: ReadonlySet<string>
  /** Prefixes of task ids to which the token is limited; null for no limit. */
  readonly tasks: readonly string[] | null
  /** Compute tables to which the token is limited; null for no limit. */
  readonly tables: readonly string[] | null
  /** The largest weight that a producer may give to a task. */
  readonly maxWeight: number
  readonly lowestLevel: number
  readonly maxOpenTasks: number
  /** How many waiting partitions the tasks of a producer may have. */
  readonly maxWaitingPartitions: number
}

/** The role of the users of a group, who sign in at a proxy. */
export interface KnownGroup extends KnownToken {
  readonly group: string
}

export interface TokenLookup {
  /** Null only without tokens. A token that was revoked meanwhile throws: null would mean no limits. */
  of(headers: IncomingHttpHeaders): Token | null
  /** The name of the token, for logs and counts; null without a valid token. */
  nameOf(headers: IncomingHttpHeaders): string | null
  /** Calls `end` when the token of the request is revoked. The returned function cancels that. */
  watch(headers: IncomingHttpHeaders, end: () => void): () => void
}

export const noTokens: TokenLookup = {
  of: () => null,
  nameOf: () => null,
  watch: () => () => undefined,
}

/** The token of an Authorization header; undefined when it has none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
}

export const roles = ['producer', 'worker', 'operator', 'viewer'] as const
export type Role = (typeof roles)[number]

/** One entry of the tokens file. Entries with the same name are one identity with several tokens. */
export interface KnownToken extends Token {
  /** SHA-256 of the token in hex. */
  readonly digest: string
  readonly roles: ReadonlySet<Role>
}

const LONGEST_AUTHORIZATION_REMEMBERED = 512

/** The tokens of one version of the file. */
export class Tokens {
  readonly #byDigest: ReadonlyMap<string, KnownToken>
  readonly #groups: readonly KnownGroup[]
  /** Hashing is the most expensive part of admission. Invalid tokens do not displace valid ones. */
  readonly #byHeader = remembered((authorization) => {
    const token = bearerToken(authorization)
    return token === undefined ? undefined : this.find(token)
  }, LONGEST_AUTHORIZATION_REMEMBERED)

  constructor(known: readonly KnownToken[], groups: readonly KnownGroup[] = []) {
    this.#byDigest = new Map(known.map((token) => [token.digest, token]))
    this.#groups = groups
  }

  get all(): Iterable<KnownToken> {
    return [...this.#byDigest.values(), ...this.#groups]
  }

  /** The first group of the file that a user has. Roles of several are not joined: each has its own limits. */
  ofGroups(groups: readonly string[]): KnownGroup | undefined {
    return this.#groups.find(({ group }) => groups.includes(group))
  }

  /** Looks a token up by its digest, so that the time it takes reveals nothing about valid tokens. */
  find(token: string): KnownToken | undefined {
    return this.#byDigest.get(digestOf(token))
  }

  ofHeader(authorization: string | undefined): KnownToken | undefined {
    return authorization === undefined ? undefined : this.#byHeader(authorization)
  }

  /** Returns these tokens, but reuses the entries of `earlier` that did not change. */
  keeping(earlier: Tokens): Tokens {
    const kept = <Kind extends KnownToken>(before: Kind | undefined, now: Kind): Kind =>
      before !== undefined && described(before) === described(now) ? before : now
    return new Tokens(
      [...this.#byDigest.values()].map((token) => kept(earlier.#byDigest.get(token.digest), token)),
      this.#groups.map((group) =>
        kept(
          earlier.#groups.find((one) => one.group === group.group),
          group,
        ),
      ),
    )
  }

  has(token: KnownToken): boolean {
    return this.#byDigest.get(token.digest) === token || this.#groups.some((group) => group === token)
  }
}

/** Tokens with the same description have the same rights. */
export const described = ({ roles: granted, ...token }: KnownToken): string =>
  JSON.stringify({ ...token, roles: [...granted].toSorted() })

export function digestOf(token: string): string {
  return hash('sha256', token, 'hex')
}

export const UNKNOWN_TOKEN: Problem = {
  code: 'token_unknown',
  detail: 'the service does not know this token',
  options: { headers: { 'www-authenticate': 'Bearer realm="Baton", error="invalid_token"' } },
}

/** The problem for a request whose token was revoked after admission. */
export function revoked(): RequestProblem {
  const { code, detail, options = {} } = UNKNOWN_TOKEN
  return new RequestProblem(code, detail, options)
}

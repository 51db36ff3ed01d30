import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { RequestProblem, type UnwrittenProblem } from '../answers/problems.ts'

/** What is known about the sender of a request from its token. */
export interface Token {
  readonly name: string
  readonly roles: ReadonlySet<string>
  /** Prefixes of task ids to which the token is limited; null for no limit. */
  readonly tasks: readonly string[] | null
  /** Compute tables to which the token is limited; null for no limit. */
  readonly tables: readonly string[] | null
}

/** Finds the token of a request. */
export interface TokenLookup {
  /**
   * Returns null only in a service without tokens. Throws a problem if the token was revoked after admission,
   * because null would mean that there are no limits.
   */
  of(headers: IncomingHttpHeaders): Token | null
  /** The name of the token, for logs and counts; null without a valid token. */
  nameOf(headers: IncomingHttpHeaders): string | null
  /** Calls `end` when the token of the request is revoked. The returned function cancels that. */
  watch(headers: IncomingHttpHeaders, end: () => void): () => void
}

/** For a service without tokens. */
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

const MOST_REMEMBERED = 10_000
const LONGEST_REMEMBERED = 512

/** The tokens of one version of the file. */
export class Tokens {
  readonly #byDigest: ReadonlyMap<string, KnownToken>
  /** Caches valid tokens by Authorization header, because hashing is the most expensive part of admission. */
  readonly #byHeader = new Map<string, KnownToken>()

  constructor(known: readonly KnownToken[]) {
    this.#byDigest = new Map(known.map((token) => [token.digest, token]))
  }

  get all(): Iterable<KnownToken> {
    return this.#byDigest.values()
  }

  /** Looks a token up by its digest, so that the time it takes reveals nothing about valid tokens. */
  find(token: string): KnownToken | undefined {
    return this.#byDigest.get(digestOf(token))
  }

  ofHeader(authorization: string | undefined): KnownToken | undefined {
    if (authorization === undefined) return undefined
    const remembered = this.#byHeader.get(authorization)
    if (remembered !== undefined) return remembered
    const token = bearerToken(authorization)
    const known = token === undefined ? undefined : this.find(token)
    if (known !== undefined && authorization.length <= LONGEST_REMEMBERED) {
      if (this.#byHeader.size >= MOST_REMEMBERED) this.#byHeader.clear()
      this.#byHeader.set(authorization, known)
    }
    return known
  }

  /** Returns these tokens, but reuses the entries of `earlier` that did not change. */
  keeping(earlier: Tokens): Tokens {
    return new Tokens(
      [...this.all].map((token) => {
        const before = earlier.#byDigest.get(token.digest)
        return before !== undefined && isSame(before, token) ? before : token
      }),
    )
  }

  has(token: KnownToken): boolean {
    return this.#byDigest.get(token.digest) === token
  }
}

function isSame(one: KnownToken, other: KnownToken): boolean {
  const described = ({ name, roles: granted, tasks, tables }: KnownToken) =>
    JSON.stringify([name, [...granted].toSorted(), tasks, tables])
  return described(one) === described(other)
}

export function digestOf(token: string): string {
  return hash('sha256', token, 'hex')
}

export const UNKNOWN_TOKEN: UnwrittenProblem = {
  code: 'token_unknown',
  detail: 'the token is not one of this service',
  options: { headers: { 'www-authenticate': 'Bearer realm="Baton", error="invalid_token"' } },
}

/** The problem for a request whose token was revoked after admission. */
export function revoked(): RequestProblem {
  const { code, detail, options = {} } = UNKNOWN_TOKEN
  return new RequestProblem(code, detail, options)
}

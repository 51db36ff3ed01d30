import type { IncomingHttpHeaders } from 'node:http'
import type { Log } from '../../handoff/log.ts'
import { ReloadedFile } from '../../settings-files.ts'
import type { Caller, Callers } from '../requests/callers.ts'
import { revoked } from './admission.ts'
import type { KnownToken, Tokens } from './tokens.ts'
import { readTokensFile } from './tokens-file.ts'

/** The result of reloading a changed file. Contains names of tokens, never tokens. */
export type TokensReload =
  | { readonly outcome: 'applied'; readonly added: readonly string[]; readonly removed: readonly string[] }
  | { readonly outcome: 'refused'; readonly faults: readonly string[] }

/**
 * The tokens of the file in its current version. If a new version cannot be used, the previous tokens stay
 * valid. When a token is removed, or its rights change, its event streams and waiting pulls are ended.
 */
export class LiveTokens implements Callers {
  readonly #file: ReloadedFile<Tokens>
  readonly #ends = new Map<Caller, Set<() => void>>()
  readonly #listeners: ((reload: TokensReload) => void)[] = []

  constructor(path: string, log: Log) {
    this.#file = new ReloadedFile<Tokens>({
      path,
      read: (before) => {
        const { tokens, warnings } = readTokensFile(path)
        return { value: before === undefined ? tokens : tokens.keeping(before), warnings }
      },
      refusal: 'the tokens file changed and cannot be used: the previous tokens stay valid',
      log,
    })
    this.#file.onReload((reload) => {
      if (reload.outcome === 'refused') return this.#notify(reload)
      const { before, now } = reload
      const removed = [...before.all].filter((token) => !now.has(token))
      const added = [...now.all].filter((token) => !before.has(token))
      this.#notify({ outcome: 'applied', added: namesOf(added), removed: namesOf(removed) })
      for (const token of removed) this.#endAll(token)
    })
  }

  ofHeader(authorization: string | undefined): KnownToken | undefined {
    return this.#tokens.ofHeader(authorization)
  }

  of({ authorization }: IncomingHttpHeaders): KnownToken {
    const token = this.#tokens.ofHeader(authorization)
    if (token === undefined) throw revoked()
    return token
  }

  nameOf({ authorization }: IncomingHttpHeaders): string | null {
    return this.#tokens.ofHeader(authorization)?.name ?? null
  }

  onReload(listener: (reload: TokensReload) => void): void {
    this.#listeners.push(listener)
  }

  watch(headers: IncomingHttpHeaders, end: () => void): () => void {
    const caller = this.#tokens.ofHeader(headers.authorization)
    // The token was revoked after the request was admitted.
    if (caller === undefined) {
      end()
      return () => undefined
    }
    const ends = this.#ends.get(caller) ?? new Set()
    this.#ends.set(caller, ends)
    ends.add(end)
    return () => {
      ends.delete(end)
      if (ends.size === 0 && this.#ends.get(caller) === ends) this.#ends.delete(caller)
    }
  }

  close(): void {
    this.#file.close()
  }

  get #tokens(): Tokens {
    return this.#file.current
  }

  #notify(reload: TokensReload): void {
    for (const listener of this.#listeners) listener(reload)
  }

  #endAll(token: KnownToken): void {
    const ends = this.#ends.get(token) ?? []
    this.#ends.delete(token)
    for (const end of ends) end()
  }
}

const namesOf = (tokens: readonly KnownToken[]) => [...new Set(tokens.map(({ name }) => name))]

import type { IncomingHttpHeaders } from 'node:http'
import { type FileWatch, watchFiles } from '../../file-watch.ts'
import type { Log } from '../../handoff/log.ts'
import { SettingsError } from '../../settings-error.ts'
import type { Caller, Callers } from '../requests/callers.ts'
import { revoked } from './admission.ts'
import type { KnownToken, Tokens } from './tokens.ts'
import { readTokensFile } from './tokens-file.ts'

/** What became of a file that changed. Names of tokens, never tokens. */
export type TokensReload =
  | { readonly outcome: 'applied'; readonly added: readonly string[]; readonly removed: readonly string[] }
  | { readonly outcome: 'refused'; readonly faults: readonly string[] }

/**
 * The tokens of the file as it is now. A new file that cannot be used leaves the old tokens in force. With a token that is
 * removed, or whose rights change, end the streams and waiting pulls that it opened.
 */
export class LiveTokens implements Callers {
  readonly #path: string
  readonly #log: Log
  readonly #watch: FileWatch
  readonly #ends = new Map<Caller, Set<() => void>>()
  #tokens: Tokens
  readonly #listeners: ((reload: TokensReload) => void)[] = []

  constructor(path: string, log: Log) {
    this.#path = path
    this.#log = log
    this.#watch = watchFiles([path], () => this.reload())
    try {
      const { tokens, warnings } = readTokensFile(path)
      this.#tokens = tokens
      for (const warning of warnings) log.warn({}, warning)
    } catch (error) {
      this.#watch.close()
      throw error
    }
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
    // Revoked since the request was admitted.
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

  reload(): void {
    const before = this.#tokens
    try {
      const { tokens, warnings } = readTokensFile(this.#path)
      this.#tokens = tokens.keeping(before)
      for (const warning of warnings) this.#log.warn({}, warning)
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      const faults = error.lines
      this.#log.error(
        { faults },
        'the tokens file changed and cannot be used: the tokens of before stay valid',
      )
      this.#tell({ outcome: 'refused', faults })
      return
    }
    const removed = [...before.all].filter((token) => !this.#tokens.has(token))
    const added = [...this.#tokens.all].filter((token) => !before.has(token))
    this.#tell({ outcome: 'applied', added: namesOf(added), removed: namesOf(removed) })
    for (const token of removed) this.#endAll(token)
  }

  close(): void {
    this.#watch.close()
  }

  #tell(reload: TokensReload): void {
    for (const listener of this.#listeners) listener(reload)
  }

  #endAll(token: KnownToken): void {
    const ends = this.#ends.get(token) ?? []
    this.#ends.delete(token)
    for (const end of ends) end()
  }
}

const namesOf = (tokens: readonly KnownToken[]) => [...new Set(tokens.map(({ name }) => name))]

import { quoted } from '@baton/protocol/core'
import { isUnconnected } from '#send'
import { ProblemError, UnexpectedAnswerError, UnreachableError, UnsendableError } from './errors.ts'

/** How long a client stays away from a leader that it could not use. */
const STAY_MILLIS = 60_000

/**
 * The base URLs of a service. Requests go to the URL that answered last; if it is unavailable, to the next
 * one. A node that forwards requests may name the URL of its leader: if that is in the list, requests go there.
 */
export class BaseUrls {
  readonly #bases: readonly string[]
  #at = 0
  /** Where requests went before they moved to the leader; null if they did not move. */
  #home: number | null = null
  #stayUntil = 0

  constructor(given: string | URL | readonly (string | URL)[]) {
    const urls: readonly (string | URL)[] = Array.isArray(given) ? given : [given as string | URL]
    this.#bases = urls.map(baseOf)
    if (this.#bases.length === 0)
      throw new TypeError('url must be a URL or a list of URLs, got an empty list')
  }

  /** The node at `base` has answered, and named its leader. */
  heard(base: string, leader: string | null): void {
    const at = this.#bases.indexOf(leader ?? '')
    if (at < 0 || base === leader || performance.now() < this.#stayUntil) return
    if (base.startsWith('https:') && leader?.startsWith('http:')) return
    this.#home = this.#bases.indexOf(base)
    this.#at = at
  }

  async ask<T>(request: (base: string) => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried += 1) {
      const at = this.#at
      const home = this.#home
      try {
        return await request(this.#bases[at] as string)
      } catch (error) {
        if (home !== null && isUnusable(error)) {
          if (this.#at === at) {
            this.#moveTo(home)
            this.#stayUntil = performance.now() + STAY_MILLIS
          }
          // If the request may have arrived, the caller decides whether to repeat it.
          if (!(error instanceof UnreachableError) || neverArrived(error)) continue
        }
        if (!isAway(error) || this.#bases.length === 1) throw error
        // Skip this if a concurrent request has already switched to the next URL.
        if (this.#at === at) this.#moveTo((at + 1) % this.#bases.length)
        if (!neverArrived(error)) throw error
        if (tried >= this.#bases.length) throw noneAnswers(this.#bases, error)
      }
    }
  }

  #moveTo(at: number): void {
    this.#at = at
    this.#home = null
  }
}

/** Whether this client cannot use the leader: its network, its certificate or its token may be for other nodes. */
function isUnusable(error: unknown): boolean {
  if (error instanceof UnreachableError || error instanceof UnsendableError) return true
  const { status } = error as { status?: number }
  return status === 401 || status === 403
}

/** Not shown in an error. */
const CREDENTIALS = /\/\/[^/]*@/

function baseOf(url: string | URL): string {
  const read = URL.canParse(String(url)) ? new URL(url) : undefined
  if (read?.protocol !== 'http:' && read?.protocol !== 'https:') {
    const shown = String(url).replace(CREDENTIALS, '//…@')
    const got = typeof url === 'string' ? quoted(shown) : shown
    throw new TypeError(`url must be a URL that begins with http:// or https://, got ${got}`)
  }
  if (read.username !== '' || read.password !== '')
    throw new TypeError('url must not have a user name or a password: they are not sent; use a token')
  return read.origin + read.pathname.replace(/\/+$/, '')
}

/** Whether another node might answer, or give another answer. */
function isAway(error: unknown): boolean {
  if (error instanceof UnreachableError) return true
  if (error instanceof ProblemError) return error.status === 503
  return error instanceof UnexpectedAnswerError && error.status >= 502 && error.status <= 504
}

function neverArrived(error: unknown): boolean {
  if (error instanceof ProblemError) return error.code === 'shutting_down'
  return error instanceof UnreachableError && isUnconnected(error.cause)
}

function noneAnswers(bases: readonly string[], error: unknown): unknown {
  if (!(error instanceof UnreachableError)) return error
  const [, why = ''] = /( cannot be reached.*)$/.exec(error.message) ?? []
  return new UnreachableError(`none of ${bases.join(', ')} answers; the last attempt${why}`, {
    cause: error.cause,
  })
}

import { quoted } from '@baton/protocol/core'
import { ProblemError, UnexpectedAnswerError, UnreachableError } from './errors.ts'

/**
 * The base URLs of a service. Requests go to the URL that answered last; if it is unavailable, to the next
 * one.
 */
export class Bases {
  readonly #bases: readonly string[]
  #at = 0

  constructor(given: string | URL | readonly (string | URL)[]) {
    const urls: readonly (string | URL)[] = Array.isArray(given) ? given : [given as string | URL]
    this.#bases = urls.map(baseOf)
    if (this.#bases.length === 0)
      throw new TypeError('url must be a URL, or several of them, got an empty list')
  }

  async ask<T>(request: (base: string) => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried += 1) {
      const at = this.#at
      try {
        return await request(this.#bases[at] as string)
      } catch (error) {
        if (!isAway(error) || this.#bases.length === 1) throw error
        // Skip this if a concurrent request has already switched to the next URL.
        if (this.#at === at) this.#at = (at + 1) % this.#bases.length
        // If the request may have arrived, the caller decides whether to repeat it.
        if (!neverArrived(error)) throw error
        if (tried === this.#bases.length) throw noneAnswers(this.#bases, error)
      }
    }
  }
}

function baseOf(url: string | URL): string {
  const read = URL.canParse(String(url)) ? new URL(url) : undefined
  if (read?.protocol !== 'http:' && read?.protocol !== 'https:') {
    const got = typeof url === 'string' ? quoted(url) : String(url)
    throw new TypeError(`url must be a URL that begins with http:// or https://, got ${got}`)
  }
  return read.origin + read.pathname.replace(/\/+$/, '')
}

/** Whether another node might answer, or give another answer. */
function isAway(error: unknown): boolean {
  if (error instanceof UnreachableError) return true
  if (error instanceof ProblemError) return error.status === 503
  return error instanceof UnexpectedAnswerError && error.status >= 502 && error.status <= 504
}

/** No process listened on the port, or the host could not be resolved or reached. */
const unconnected = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

function neverArrived(error: unknown): boolean {
  if (error instanceof ProblemError) return error.code === 'shutting_down'
  if (!(error instanceof UnreachableError)) return false
  const { cause } = error as { cause?: { cause?: { code?: string } } }
  return unconnected.has(cause?.cause?.code ?? '')
}

function noneAnswers(bases: readonly string[], error: unknown): unknown {
  if (!(error instanceof UnreachableError)) return error
  const [, why = ''] = /( cannot be reached.*)$/.exec(error.message) ?? []
  return new UnreachableError(`none of ${bases.join(', ')} answers; the last one${why}`, {
    cause: error.cause,
  })
}

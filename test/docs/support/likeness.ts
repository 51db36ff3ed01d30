import { MORE } from './shown-json.ts'

/**
 * Compares an answer with the one in a document. Values have to be equal. What differs from run to run is
 * compared by its format: times, the version, secrets, cursors, and the ids of leases, subscriptions and events. Ids
 * also have to be consistent throughout the document. Fencing tokens are times: each has to differ from the one
 * that is shown by the same amount. What a `…` stands for is not compared.
 */
export class Likeness {
  readonly #ids = new Map<string, string>()
  #tokenShift: number | undefined

  /** Replaces the document's ids by the real ones. An id that was never given out is sent unchanged. */
  translate(text: string): string {
    return text.replaceAll(IDS, (shown) => {
      const real = this.#ids.get(shown) ?? shown
      this.#ids.set(shown, real)
      return real
    })
  }

  /** Where the two differ; nothing when they match. */
  differences(shown: unknown, real: unknown, at = ''): string[] {
    if (typeof shown === 'string' && typeof real === 'string') return this.#texts(shown, real, at)
    if (Array.isArray(shown) && Array.isArray(real)) {
      if (shown.at(-1) === MORE) {
        const listed = shown.slice(0, -1)
        return this.differences(listed, real.slice(0, listed.length), at)
      }
      if (shown.length !== real.length)
        return [`${at} shows ${shown.length} elements, there are ${real.length}`]
      return shown.flatMap((element, position) =>
        this.differences(element, real[position], `${at}/${position}`),
      )
    }
    if (isObject(shown) && isObject(real)) {
      const hasMore = Object.hasOwn(shown, MORE)
      const fields = new Set([...Object.keys(shown), ...(hasMore ? [] : Object.keys(real))])
      fields.delete(MORE)
      return [...fields].flatMap((field) => this.differences(shown[field], real[field], `${at}/${field}`))
    }
    if (at.endsWith('/fencingToken') && typeof shown === 'number' && typeof real === 'number') {
      this.#tokenShift ??= real - shown
      return real - shown === this.#tokenShift ? [] : [differs(shown, real, at)]
    }
    if (at === '/load') return isShare(shown) && isShare(real) ? [] : [differs(shown, real, at)]
    return Object.is(shown, real) ? [] : [differs(shown, real, at)]
  }

  #texts(shown: string, real: string, at: string): string[] {
    const form = forms.find((candidate) => candidate.test(shown))
    if (form !== undefined) return form.test(real) ? [] : [differs(shown, real, at)]
    if (at === '/next' && isCursor(shown)) return isCursor(real) ? [] : [differs(shown, real, at)]
    if (!ID.test(shown)) return shown === real ? [] : [differs(shown, real, at)]
    const known = this.#ids.get(shown)
    this.#ids.set(shown, known ?? real)
    return (known ?? real) === real && ID.test(real) ? [] : [differs(shown, real, at)]
  }
}

const ID = /^(?:[0-9a-z]{1,11}-[0-9a-z]{1,11}-|sub_|evt_)[A-Za-z0-9_-]{16}$/
const IDS =
  /(?<=")[0-9a-z]{1,11}-[0-9a-z]{1,11}-[A-Za-z0-9_-]{16}(?=")|(?<=[/"])sub_[A-Za-z0-9_-]{16}(?=[/"]|$)/g
const forms = [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, /^\d+\.\d+\.\d+$/, /^whsec_[A-Za-z0-9+/]{32,}=*$/]

/** A cursor is a position in base64. Positions of the audit depend on all that was changed before. */
function isCursor(text: string): boolean {
  return /^\d+$/.test(Buffer.from(text, 'base64url').toString())
}

const isShare = (load: unknown) => typeof load === 'number' && load >= 0 && load <= 1

const differs = (shown: unknown, real: unknown, at: string) =>
  `${at} is shown as ${JSON.stringify(shown)}, it is ${JSON.stringify(real)}`

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

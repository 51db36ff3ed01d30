/**
 * Whether an answer is like the one that a document shows. Values have to be equal; what differs from run to run is
 * compared by its form: moments, the version, and lease ids, which also have to stay the same lease throughout.
 */
export class Likeness {
  readonly #leases = new Map<string, string>()

  /** Puts the real lease ids in the place of the document's. An id that was never given out is sent as it stands. */
  translate(text: string): string {
    return text.replaceAll(LEASE_IDS, (shown) => {
      const real = this.#leases.get(shown) ?? shown
      this.#leases.set(shown, real)
      return real
    })
  }

  /** Where the two differ; nothing when they are alike. */
  differences(shown: unknown, real: unknown, at = ''): string[] {
    if (typeof shown === 'string' && typeof real === 'string') return this.#texts(shown, real, at)
    if (Array.isArray(shown) && Array.isArray(real)) {
      if (shown.length !== real.length)
        return [`${at} shows ${shown.length} elements, there are ${real.length}`]
      return shown.flatMap((element, position) =>
        this.differences(element, real[position], `${at}/${position}`),
      )
    }
    if (isObject(shown) && isObject(real)) {
      const fields = new Set([...Object.keys(shown), ...Object.keys(real)])
      return [...fields].flatMap((field) => this.differences(shown[field], real[field], `${at}/${field}`))
    }
    return Object.is(shown, real) ? [] : [differs(shown, real, at)]
  }

  #texts(shown: string, real: string, at: string): string[] {
    const form = forms.find((candidate) => candidate.test(shown))
    if (form !== undefined) return form.test(real) ? [] : [differs(shown, real, at)]
    if (!LEASE_ID.test(shown)) return shown === real ? [] : [differs(shown, real, at)]
    const known = this.#leases.get(shown)
    this.#leases.set(shown, known ?? real)
    return (known ?? real) === real && LEASE_ID.test(real) ? [] : [differs(shown, real, at)]
  }
}

const LEASE_ID = /^[0-9a-z]{1,11}-[0-9a-z]{1,11}-[A-Za-z0-9_-]{16}$/
const LEASE_IDS = /(?<=")[0-9a-z]{1,11}-[0-9a-z]{1,11}-[A-Za-z0-9_-]{16}(?=")/g
const forms = [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, /^\d+\.\d+\.\d+$/]

const differs = (shown: unknown, real: unknown, at: string) =>
  `${at} is shown as ${JSON.stringify(shown)}, it is ${JSON.stringify(real)}`

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

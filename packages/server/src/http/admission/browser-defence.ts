import type { IncomingHttpHeaders } from 'node:http'
import { remembered } from '../remembered.ts'

/** Whether a host without a port is a loopback name or address. IPv6 is accepted with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (name === '[::1]' || name === '::1') return true
  return /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(name)
}

/** Whether an address means all interfaces. Clients cannot connect to such an address. */
export const isWildcard = (host: string): boolean =>
  ['0.0.0.0', '::', '[::]', '*'].includes(host) || /^[0:]+$/.test(host)

/**
 * Protects against DNS rebinding: another site can point its own name at 127.0.0.1 and have a browser call
 * this service. The Host header then has that site's name. Only loopback names and hosts that the operator
 * allowed are served.
 */
export class HostRule {
  readonly #allowed: ReadonlySet<string>
  readonly #isLoopback = remembered((host) => isLoopback(withoutPort(host)))

  constructor(allowedHosts: readonly string[]) {
    this.#allowed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  }

  admits(host: string): boolean {
    return this.isLoopback(host) || this.isNamed(host)
  }

  isLoopback(host: string): boolean {
    return this.#isLoopback(host)
  }

  /** Whether the operator allowed the host, with this port or without a port. */
  isNamed(host: string): boolean {
    const name = host.toLowerCase()
    return this.#allowed.has(name) || this.#allowed.has(withoutPort(name))
  }
}

function withoutPort(host: string): string {
  return host.replace(/:\d*$/, '')
}

/**
 * Returns why a request appears to come from a browser but not from a page of this service; undefined when it
 * does not. Called after `crossSiteFault`.
 *
 * Used by services without tokens that are reached under a name other than loopback. Over plain HTTP,
 * browsers send no Sec-Fetch headers to such a name, and an image of another site is a GET like any other. A
 * page can omit the Referer and choose the Accept header, but it cannot change the User-Agent.
 */
export function browserFault({
  referer,
  accept,
  origin,
  'user-agent': userAgent,
  'sec-fetch-site': site,
}: IncomingHttpHeaders): string | undefined {
  if (accept !== undefined && wantsToShow(accept))
    return `the request asks for an image or a document, as browsers do (Accept)${REMEDY}`
  // If the browser names the origin of the request, the checks of these headers have already decided.
  const isOfOwnPage = referer !== undefined || origin !== undefined || site !== undefined
  if (!isOfOwnPage && userAgent !== undefined && isBrowser(userAgent))
    return `the request comes from a browser and does not name its page (User-Agent)${REMEDY}`
  return undefined
}

const REMEDY = '; without tokens, only programs and the page of the service can do this'

/** What browsers list first for images, documents, styles or media. Scripts accept anything. */
const SHOWN = /^\s*(?:image|text\/html|text\/css|application\/xhtml\+xml|video|audio|font)\b/i
/** The default Accept header of Java's HttpURLConnection. */
const JAVA = /^text\/html, image\/gif, image\/jpeg, \*/

const wantsToShow = remembered((accept) => SHOWN.test(accept) && !JAVA.test(accept))

/** Every browser's User-Agent begins with `Mozilla/`. So does PowerShell's, which also contains its name. */
const isBrowser = remembered((userAgent) => /^Mozilla\//.test(userAgent) && !/PowerShell\//.test(userAgent))

/**
 * Returns why a request appears to be sent by a browser for a page of another site, by a navigation or by a
 * prefetch; undefined when it does not. Programs send none of these headers, and pages cannot set them.
 */
export function crossSiteFault(headers: IncomingHttpHeaders, hosts: HostRule): string | undefined {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    return 'the request comes from a page of another site (Sec-Fetch-Site)'
  }
  if (headers['sec-fetch-mode'] === 'navigate') {
    return 'the request is a navigation of a browser (Sec-Fetch-Mode: navigate)'
  }
  if (isPrefetch(headers['sec-purpose']) || isPrefetch(headers['purpose'])) {
    return 'the request is a prefetch, which must not have an effect'
  }
  // Old browsers, such as Safari before 16.4, send no Sec-Fetch headers, but these two.
  const { origin, referer } = headers
  if (origin !== undefined && !isOwnAddress(origin, headers.host, hosts)) {
    return 'the request comes from a page of another origin (Origin)'
  }
  if (referer !== undefined && !isOwnAddress(referer, headers.host, hosts)) {
    return 'the request comes from a page of another site (Referer)'
  }
  return undefined
}

function isPrefetch(purpose: string | string[] | undefined): boolean {
  return purpose !== undefined && String(purpose).toLowerCase().includes('prefetch')
}

/**
 * Whether an Origin or a Referer names this service. The scheme is ignored, because a proxy may terminate
 * TLS. If the proxy also changes the Host, its name can be added to the allowed hosts.
 */
function isOwnAddress(address: string, host: string | undefined, hosts: HostRule): boolean {
  const named = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)/i.exec(address)?.[1]
  if (named === undefined) return false
  return named.toLowerCase() === host?.toLowerCase() || hosts.isNamed(named)
}

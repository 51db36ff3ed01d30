import type { IncomingHttpHeaders } from 'node:http'
import { remembered } from '../requests/remembered.ts'
import type { HostRule } from './host-rule.ts'

/**
 * Why a request looks like a browser's that no page of this service sent; undefined when it does not. For services
 * without tokens under a name that is not loopback: to such a name, over plain HTTP, browsers send none of the
 * Sec-Fetch headers, and an image of another site is a GET like any other.
 *
 * A page can leave out the Referer and choose what to accept, but not who the browser says it is.
 */
export function browserFault(
  { referer, accept, origin, 'user-agent': userAgent, 'sec-fetch-site': site }: IncomingHttpHeaders,
  isOwn: (address: string) => boolean,
): string | undefined {
  if (referer !== undefined && !isOwn(referer))
    return `the request comes from a page of another site (Referer)${REMEDY}`
  if (accept !== undefined && wantsToShow(accept))
    return `the request asks for an image or a document, as browsers do (Accept)${REMEDY}`
  // A browser that says where the request comes from was judged by that.
  const isOfOwnPage = referer !== undefined || origin !== undefined || site !== undefined
  if (!isOfOwnPage && userAgent !== undefined && isBrowser(userAgent))
    return `the request comes from a browser that does not say from which page (User-Agent)${REMEDY}`
  return undefined
}

const REMEDY = '; without tokens, only programs and pages of the service itself may do this'

/** What browsers ask for first to show it: images, documents, styles, media. Scripts may be anything. */
const SHOWN = /^\s*(?:image|text\/html|text\/css|application\/xhtml\+xml|video|audio|font)\b/i
/** What Java's HttpURLConnection asks for unless it is told otherwise. */
const JAVA = /^text\/html, image\/gif, image\/jpeg, \*/

const wantsToShow = remembered((accept) => SHOWN.test(accept) && !JAVA.test(accept))

/** All browsers begin like this. So does PowerShell, which says its name. */
const isBrowser = remembered((userAgent) => /^Mozilla\//.test(userAgent) && !/PowerShell\//.test(userAgent))

/**
 * Why a request looks as if a browser had been tricked or had guessed its way into sending it; undefined when it
 * does not. Programs send none of these headers, and browsers do not let a page set them.
 */
export function crossSiteFault(headers: IncomingHttpHeaders, hosts: HostRule): string | undefined {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    return 'the request comes from a page of another site (Sec-Fetch-Site)'
  }
  if (headers['sec-fetch-mode'] === 'navigate') {
    return 'the request comes from following a link or typing an address (Sec-Fetch-Mode: navigate)'
  }
  if (isPrefetch(headers['sec-purpose']) || isPrefetch(headers['purpose'])) {
    return 'the request is a prefetch, which must not have an effect'
  }
  const { origin } = headers
  if (origin !== undefined && !isOwnAddress(origin, headers.host, hosts)) {
    return 'the request comes from a page of another origin (Origin)'
  }
  return undefined
}

function isPrefetch(purpose: string | string[] | undefined): boolean {
  return purpose !== undefined && String(purpose).toLowerCase().includes('prefetch')
}

/**
 * Whether an Origin or a Referer names this service. The scheme is left out: a proxy may have ended TLS. Where one also
 * changed the Host, its name can be allowed.
 */
export function isOwnAddress(address: string, host: string | undefined, hosts: HostRule): boolean {
  const named = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)/i.exec(address)?.[1]
  if (named === undefined) return false
  return named.toLowerCase() === host?.toLowerCase() || hosts.isNamed(named)
}

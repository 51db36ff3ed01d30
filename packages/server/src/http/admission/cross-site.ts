import type { IncomingHttpHeaders } from 'node:http'
import type { HostRule } from './host-rule.ts'

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

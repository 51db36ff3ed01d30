import { remembered } from '../requests/remembered.ts'

/** Names and addresses that lead back to the machine itself, with no port. IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  if (name === '[::1]' || name === '::1') return true
  return /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(name)
}

/** Listens on every address of the machine, and is none by which others reach it. */
export const isWildcard = (host: string): boolean =>
  ['0.0.0.0', '::', '[::]', '*'].includes(host) || /^[0:]+$/.test(host)

/**
 * A page of another site can have a browser call this service under that site's own name, by pointing the name at
 * 127.0.0.1. The Host header then gives it away: only loopback names and hosts that the operator named are served.
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

  /** Whether the operator named it, with this port or without any. */
  isNamed(host: string): boolean {
    const name = host.toLowerCase()
    return this.#allowed.has(name) || this.#allowed.has(withoutPort(name))
  }
}

function withoutPort(host: string): string {
  return host.replace(/:\d*$/, '')
}

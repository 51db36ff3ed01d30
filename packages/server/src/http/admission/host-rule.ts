import { remembered } from '../requests/remembered.ts'

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

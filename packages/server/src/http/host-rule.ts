import { isLoopback } from '../loopback.ts'

const REMEMBERED_HOSTS = 1000

/**
 * A page of another site can have a browser call this service under that site's own name, by pointing the name at
 * 127.0.0.1. The Host header then gives it away: only loopback names and hosts that the operator named are served.
 */
export class HostRule {
  readonly #allowed: ReadonlySet<string>
  /** Clients send the same Host each time. */
  readonly #admitted = new Set<string>()

  constructor(allowedHosts: readonly string[]) {
    this.#allowed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  }

  admits(host: string): boolean {
    if (this.#admitted.has(host)) return true
    if (!this.isNamed(host) && !isLoopback(withoutPort(host))) return false
    if (this.#admitted.size >= REMEMBERED_HOSTS) this.#admitted.clear()
    this.#admitted.add(host)
    return true
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

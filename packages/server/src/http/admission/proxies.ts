import type { IncomingHttpHeaders } from 'node:http'
import { type BlockList, isIP, isIPv6, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { listOfNetworks } from '../../networks.ts'
import { admittedRequestOf } from '../forwarded-client.ts'
import { remembered } from '../remembered.ts'

/** More hops than any real request has. Earlier hops are ignored. */
const MOST_HOPS = 20

/** Proxies whose X-Forwarded headers are trusted. For a forwarded request, the follower has read them. */
export class Proxies {
  readonly #trusted: BlockList
  readonly #isEmpty: boolean
  readonly #isSecure: boolean

  /** Addresses, or networks in CIDR notation. `isSecure`: whether this node serves TLS. */
  constructor(trusted: readonly string[], isSecure = false) {
    this.#isSecure = isSecure
    this.#isEmpty = trusted.length === 0
    this.#trusted = listOfNetworks(trusted)
  }

  /** The address of the client: the peer address, or what trusted proxies report in X-Forwarded-For. */
  addressOf(socket: Pick<Socket, 'remoteAddress'>, headers: IncomingHttpHeaders): string | null {
    const client = admittedRequestOf(headers)
    if (client !== undefined) return client.address
    let address = plain(socket.remoteAddress)
    if (address === null || !this.isTrusted(address)) return address
    const hops = String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .slice(-MOST_HOPS)
    // Each proxy appends the address it saw. Walk back from the last to the first untrusted one.
    for (const hop of hops.toReversed()) {
      const named = plain(withoutPort(hop.trim()))
      if (named === null || isIP(named) === 0) return address
      address = named
      if (!this.isTrusted(address)) return address
    }
    return address
  }

  /** The host that the client used, as reported by a trusted proxy, or else the Host header. */
  hostOf(socket: Pick<Socket, 'remoteAddress'>, headers: IncomingHttpHeaders): string | undefined {
    if (admittedRequestOf(headers) !== undefined) return headers.host
    const forwarded = this.#forwarded(socket, headers['x-forwarded-host'])
    return forwarded ?? headers.host
  }

  /** The scheme that the client used, as reported by a trusted proxy, or else that of this node. */
  schemeOf(socket: Pick<Socket, 'remoteAddress'>, headers: IncomingHttpHeaders): string {
    const client = admittedRequestOf(headers)
    if (client !== undefined) return client.scheme
    const forwarded = this.#forwarded(socket, headers['x-forwarded-proto'])?.toLowerCase()
    if (forwarded === 'http' || forwarded === 'https') return forwarded
    return this.#isSecure ? 'https' : 'http'
  }

  /** Whether one of them is connected to this node. */
  isPeer({ remoteAddress }: Pick<Socket, 'remoteAddress'>): boolean {
    const address = plain(remoteAddress)
    return address !== null && this.isTrusted(address)
  }

  isTrusted(address: string): boolean {
    if (this.#isEmpty) return false
    return this.#trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }

  /** Proxies append their value, so the last one is from the proxy that is connected to this node. */
  #forwarded(
    socket: Pick<Socket, 'remoteAddress'>,
    header: string | string[] | undefined,
  ): string | undefined {
    if (header === undefined || !this.isPeer(socket)) return undefined
    const last = String(header).split(',').at(-1)?.trim()
    return last === '' ? undefined : last
  }
}

/** Replaces the Host header by the host that a trusted proxy reports. Must run before other hooks. */
export function trustProxies(app: FastifyInstance, proxies: Proxies): void {
  app.addHook('onRequest', ({ raw: { headers, socket } }, _reply, done) => {
    const host = proxies.hostOf(socket, headers)
    if (host !== undefined) headers.host = host
    done()
  })
}

/** Converts an IPv4-mapped IPv6 address, as dual-stack sockets report it, to IPv4. */
function plain(address: string | undefined): string | null {
  if (address === undefined || address === '') return null
  return withoutMapping(address)
}

/** Some proxies add the port of the client. */
function withoutPort(address: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(address)?.[1]
  return bracketed ?? address.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
}

const withoutMapping = (address: string) => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address

const NETWORK_GROUPS = 4

/** What connections are counted by. A client usually has a whole /64 network of IPv6. */
export const networkOf = remembered((address: string): string => {
  const unmapped = withoutMapping(address)
  if (!isIPv6(unmapped)) return unmapped
  const [before = '', after] = (unmapped.split('%', 1)[0] ?? '').split('::')
  const first = before === '' ? [] : before.split(':')
  const last = after === undefined || after === '' ? [] : after.split(':')
  const zeros = after === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last]
  return `${groups
    .slice(0, NETWORK_GROUPS)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
})

/** The key of a connection's address. Undefined: the client has already disconnected. */
export function networkOfSocket({ remoteAddress }: Socket): string | undefined {
  return remoteAddress === undefined ? undefined : networkOf(remoteAddress)
}

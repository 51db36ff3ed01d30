import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** More hops than any request takes; the rest is not looked at. */
const MOST_HOPS = 20

/** Proxies whose X-Forwarded headers are believed. Those of anyone else are passed over. */
export class Proxies {
  readonly #trusted = new BlockList()
  readonly #isEmpty: boolean

  /** Addresses, or networks as `10.0.0.0/8`. Each has been checked by `isNetwork`. */
  constructor(trusted: readonly string[]) {
    this.#isEmpty = trusted.length === 0
    for (const network of trusted) {
      const [address = '', bits] = network.split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      if (bits === undefined) this.#trusted.addAddress(address, family)
      else this.#trusted.addSubnet(address, Number(bits), family)
    }
  }

  /** The address of the client: that of the connection, or what the trusted hops before it say. */
  addressOf(socket: Pick<Socket, 'remoteAddress'>, headers: IncomingHttpHeaders): string | null {
    let address = plain(socket.remoteAddress)
    if (address === null || !this.isTrusted(address)) return address
    const hops = String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .slice(-MOST_HOPS)
    // The last one was written by the hop that connects here, and so on: up to the first that is not ours.
    for (const hop of hops.toReversed()) {
      const named = plain(withoutPort(hop.trim()))
      if (named === null || isIP(named) === 0) return address
      address = named
      if (!this.isTrusted(address)) return address
    }
    return address
  }

  /** The name under which the client reached the first proxy, where a trusted one says so. */
  hostOf(socket: Pick<Socket, 'remoteAddress'>, headers: IncomingHttpHeaders): string | undefined {
    const forwarded = this.#forwarded(socket, headers['x-forwarded-host'])
    return forwarded ?? headers.host
  }

  /** How the client reached the first proxy: `http` or `https`, where a trusted one says so. */
  schemeOf(socket: Pick<Socket, 'remoteAddress'>, headers: IncomingHttpHeaders): string | undefined {
    const forwarded = this.#forwarded(socket, headers['x-forwarded-proto'])?.toLowerCase()
    return forwarded === 'http' || forwarded === 'https' ? forwarded : undefined
  }

  isTrusted(address: string): boolean {
    if (this.#isEmpty) return false
    return this.#trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }

  /** The last of several: what the hop that connects here wrote. */
  #forwarded(
    { remoteAddress }: Pick<Socket, 'remoteAddress'>,
    header: string | string[] | undefined,
  ): string | undefined {
    if (header === undefined) return undefined
    const address = plain(remoteAddress)
    if (address === null || !this.isTrusted(address)) return undefined
    const last = String(header).split(',').at(-1)?.trim()
    return last === '' ? undefined : last
  }
}

/** Where a trusted proxy says under which name it was reached, that is the Host of the request. Before other hooks. */
export function believeProxies(app: FastifyInstance, proxies: Proxies): void {
  app.addHook('onRequest', ({ raw: { headers, socket } }, _reply, done) => {
    const host = proxies.hostOf(socket, headers)
    if (host !== undefined) headers.host = host
    done()
  })
}

/** An IPv4 address as such, also where a socket for both kinds writes it as IPv6. */
function plain(address: string | undefined): string | null {
  if (address === undefined || address === '') return null
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
}

/** Some proxies add one. */
function withoutPort(address: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(address)?.[1]
  return bracketed ?? address.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
}

/** Whether a text is an address, or a network with its length. */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...others] = text.split('/')
  const version = isIP(address)
  if (version === 0 || others.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 6 ? 128 : 32))
}

import { lookup as lookUp } from 'node:dns/promises'
import { type BlockList, isIP, isIPv6, type LookupFunction } from 'node:net'
import { listOfNetworks } from '../networks.ts'

/** Private, local, shared, documentation and multicast addresses, and ranges that embed IPv4. */
const NOT_PUBLIC = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '100:0:0:1::/64'],
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20', '5f00::/16'],
  ...['fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]

/** The addresses that events may be posted to: public ones, and the networks that a setting adds. */
export class AddressRule {
  readonly #notPublic = listOfNetworks(NOT_PUBLIC)
  readonly #allowed: BlockList

  /** `allowedNetworks` in CIDR notation, such as 10.20.0.0/16, or single addresses. */
  constructor(allowedNetworks: readonly string[]) {
    this.#allowed = listOfNetworks(allowedNetworks)
  }

  allows(address: string): boolean {
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    return this.#allowed.check(address, family) || !this.#notPublic.check(address, family)
  }

  /** Checks the host of a URL if it is an address. A name is checked when it is resolved. */
  allowsHost(hostname: string): boolean {
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    return isIP(host) === 0 || this.allows(host)
  }

  /** Connects only to an address that was checked: a second lookup could return another (DNS rebinding). */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }).then(
      (found) => {
        const allowed = found.filter(({ address }) => this.allows(address))
        const [first] = allowed
        if (first === undefined) callback(new AddressRefused(hostname), [])
        else if (options.all === true) callback(null, allowed)
        else callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    )
  }
}

const REFUSED = 'is not on the public internet; an operator can allow its network with --webhook-networks'

export class AddressRefused extends Error {
  override name = 'AddressRefused'
  constructor(host: string) {
    super(`${host} ${REFUSED}`)
  }
}

/** Why events cannot be posted to a URL, worded to follow "url"; undefined if they can. */
export function receiverUrlFault(text: string, rule: AddressRule): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    return 'must be a URL that begins with http:// or https://'
  if (url.username !== '' || url.password !== '')
    return 'must not contain a user or password; events are signed instead'
  return rule.allowsHost(url.hostname) ? undefined : REFUSED
}

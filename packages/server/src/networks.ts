import { BlockList, isIP } from 'node:net'

interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** An address, or a network in CIDR notation. Undefined if the text is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return undefined
  const longest = version === 6 ? 128 : 32
  const length = prefix === undefined ? longest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1
  if (length < 0 || length > longest) return undefined
  return { address, prefix: length, family: version === 6 ? 'ipv6' : 'ipv4' }
}

export function listOfNetworks(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) {
    const network = parseNetwork(text)
    if (network !== undefined) list.addSubnet(network.address, network.prefix, network.family)
  }
  return list
}

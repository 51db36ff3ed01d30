import { isIPv6, type Socket } from 'node:net'
import { remembered } from '../requests/remembered.ts'

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i
const NETWORK_GROUPS = 4

/** Whoever has one address of a /64 network of IPv6 has all of them: they count as one. */
export const networkOf = remembered((address: string): string => {
  const plain = MAPPED_IPV4.exec(address)?.[1] ?? address
  if (!isIPv6(plain)) return plain
  const [before = '', after] = (plain.split('%', 1)[0] ?? '').split('::')
  const first = before === '' ? [] : before.split(':')
  const last = after === undefined || after === '' ? [] : after.split(':')
  const zeros = after === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last]
  return `${groups
    .slice(0, NETWORK_GROUPS)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
})

/** What connections are counted by. Undefined: the other side is gone already. */
export function addressOf({ remoteAddress }: Socket): string | undefined {
  return remoteAddress === undefined ? undefined : networkOf(remoteAddress)
}

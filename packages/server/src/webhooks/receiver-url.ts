import type { AddressRule } from './address-rule.ts'

/** Why events cannot be posted to a URL, worded to follow "url"; undefined if they can. */
export function receiverUrlFault(text: string, rule: AddressRule): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    return 'must be a URL that begins with http:// or https://'
  if (url.username !== '' || url.password !== '')
    return 'must not hold a user or password; events are signed instead'
  return rule.allowsHost(url.hostname)
    ? undefined
    : 'is not on the public internet; an operator can allow its network with --webhook-networks'
}

import { describe, expect, test } from 'vitest'
import { parseNetwork } from '../../src/networks.ts'
import { AddressRule } from '../../src/webhooks/address-rule.ts'

const refused = [
  ...['0.0.0.0', '10.0.0.1', '100.64.0.1', '127.0.0.1', '127.255.255.254', '169.254.169.254', '172.16.0.1'],
  ...['172.31.255.255', '192.168.1.1', '198.18.0.1', '224.0.0.1', '255.255.255.255', '::', '::1', '::7f00:1'],
  ...['::ffff:127.0.0.1', '::ffff:10.1.2.3', '64:ff9b::a00:1', '2002:7f00:1::', 'fc00::1', 'fd12:3456::1'],
  ...['fe80::1', 'ff02::1', '2001:db8::1', '2001::1', '::ffff:0:10.0.0.1', '64:ff9b:1::a00:1', '100::1'],
  ...['100:0:0:1::1', '3fff::1', '3fff:fff::1', '5f00::1'],
]
const allowed = ['1.1.1.1', '172.32.0.1', '100.128.0.1', '8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8']

describe('addresses', () => {
  const rule = new AddressRule([])
  test.each(refused)('%s is not public', (address) => expect(rule.allows(address)).toBe(false))
  test.each(allowed)('%s is public', (address) => expect(rule.allows(address)).toBe(true))

  test('of allowed networks are accepted, and no others', () => {
    const opened = new AddressRule(['10.20.0.0/16', '127.0.0.1', 'fd00::/8'])
    const verdicts = ['10.20.3.4', '127.0.0.1', 'fd01::1', '10.21.0.1', '127.0.0.2', 'fc00::1'].map(
      (address) => opened.allows(address),
    )
    expect(verdicts).toEqual([true, true, true, false, false, false])
  })

  test('are recognized in URLs in every notation', () => {
    const hostOf = (url: string) => new URL(url).hostname
    for (const host of ['127.1', '0x7f000001', '017700000001', '[::1]', '[::ffff:7f00:1]', '2130706433'])
      expect([host, rule.allowsHost(hostOf(`http://${host}/`))]).toEqual([host, false])
    for (const host of ['1.1.1.1', 'localhost', 'a.example'])
      expect([host, rule.allowsHost(hostOf(`http://${host}/`))]).toEqual([host, true])
  })

  test('of a name are those that are allowed, or none', async () => {
    const resolve = (over: AddressRule, all: boolean) =>
      new Promise((done) => {
        over.lookup('localhost', { all }, (error, address) => done(error?.message ?? address))
      })
    expect(await resolve(rule, false)).toContain('localhost is not on the public internet')
    expect(await resolve(rule, true)).toContain('localhost is not on the public internet')
    const opened = new AddressRule(['127.0.0.0/8'])
    expect(await resolve(opened, true)).toEqual([{ address: '127.0.0.1', family: 4 }])
    expect(await resolve(opened, false)).toBe('127.0.0.1')
  })

  test.each(['10.0.0.0/33', '10.0.0/8', 'fd00::/129', 'example', '10.0.0.0/8/8', '10.0.0.0/x', ''])(
    '%j is not a network',
    (text) => expect(parseNetwork(text)).toBeUndefined(),
  )
})

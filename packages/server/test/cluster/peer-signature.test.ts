import { describe, expect, test } from 'vitest'
import { coveredText } from '../../src/cluster/forwarded-request.ts'
import { PeerSignature } from '../../src/cluster/peer-signature.ts'

let millis = 0
const leaderRow = (changes = {}) => ({
  term: 't',
  leader: null,
  clusterId: 'c',
  secret: 'between us',
  now: 1_780_000_000_000 + millis,
  last: 0,
  ...changes,
})

function node(nodeId: string, changes = {}): PeerSignature {
  const signature = new PeerSignature(nodeId, () => millis)
  signature.learn(leaderRow(changes))
  return signature
}

const CONTENT = { digest: 'd', address: '192.0.2.1' }
const covered = coveredText('GET', '/pull', { prefer: 'wait=20', 'x-instance-id': 'w' })

describe('a signed request of another node', () => {
  test('is accepted once and cannot be replayed', () => {
    const [a, b] = [node('a'), node('b')]
    const header = a.sign('b', CONTENT, covered)
    expect(b.check(header, covered)).toMatchObject({ from: 'a', to: 'b', number: 1, ...CONTENT })
    expect(b.check(header, covered)).toBe('repeated')
  })

  test('may be overtaken by others of the same node', () => {
    const [a, b] = [node('a'), node('b')]
    const headers = Array.from({ length: 5000 }, () => a.sign('b', CONTENT, covered))
    for (const header of headers.toReversed()) expect(b.check(header, covered)).toMatchObject({ from: 'a' })
    for (const header of headers) expect(b.check(header, covered)).toBe('repeated')
  })

  test.each([
    ['with another method', coveredText('HEAD', '/pull', { prefer: 'wait=20', 'x-instance-id': 'w' })],
    ['with another target', coveredText('GET', '/pull?batch=9', { prefer: 'wait=20', 'x-instance-id': 'w' })],
    ['with another header', coveredText('GET', '/pull', { prefer: 'wait=60', 'x-instance-id': 'w' })],
    ['with one header less', coveredText('GET', '/pull', { prefer: 'wait=20' })],
    [
      'with one header more',
      coveredText('GET', '/pull', { prefer: 'wait=20', 'x-instance-id': 'w', a: 'b' }),
    ],
  ])('is refused %s', (_, altered) => {
    const [a, b] = [node('a'), node('b')]
    expect(b.check(a.sign('b', CONTENT, covered), altered)).toBe('unsigned')
  })

  const withContent = (header: string, changed: object) => {
    const [text = '', mac] = header.split('.')
    const content = { ...JSON.parse(Buffer.from(text, 'base64url').toString()), ...changed }
    return `${Buffer.from(JSON.stringify(content)).toString('base64url')}.${mac}`
  }

  test.each([
    ['with another body', (header: string) => withContent(header, { digest: 'e' })],
    ['from another address', (header: string) => withContent(header, { address: '127.0.0.1' })],
    ['for another node', (header: string) => withContent(header, { to: 'x' })],
    ['under another name', (header: string) => withContent(header, { from: 'x' })],
    ['with a number of its own', (header: string) => withContent(header, { number: 2 })],
    ['without a signature', (header: string) => header.split('.')[0]],
    ['with half a signature', (header: string) => header.slice(0, -4)],
    ['with an empty header', () => ''],
    ['without the header', () => undefined],
  ] as const)('is refused %s', (_, forge) => {
    const [a, b] = [node('a'), node('b')]
    expect(b.check(forge(a.sign('b', CONTENT, covered)), covered)).toBe('unsigned')
  })

  test('is refused with another secret, or from another cluster', () => {
    const b = node('b')
    for (const changes of [{ secret: 'guessed' }, { clusterId: 'd' }])
      expect(b.check(node('a', changes).sign('b', CONTENT, covered), covered)).toBe('unsigned')
  })

  test('is refused by a node that does not know the secret yet', () => {
    const unknowing = new PeerSignature('a', () => millis)
    expect(new PeerSignature('b').check(unknowing.sign('b', CONTENT, covered), covered)).toBe('unsigned')
  })

  test('is refused when it is old; the clocks of machines do not matter', () => {
    const [a, b] = [node('a'), node('b')]
    const header = a.sign('b', CONTENT, covered)
    millis += 61_000
    expect(b.check(header, covered)).toBe('stale')
    // Another machine with another uptime: both use the clock of the database.
    const elsewhere = new PeerSignature('e', () => 5)
    elsewhere.learn(leaderRow())
    expect(b.check(elsewhere.sign('b', CONTENT, covered), covered)).toMatchObject({ from: 'e' })
  })

  test('is still refused after its sender was forgotten', () => {
    const [a, b] = [node('a'), node('b')]
    const header = a.sign('b', CONTENT, covered)
    b.check(header, covered)
    millis += 200_000
    expect(b.check(node('c').sign('b', CONTENT, covered), covered)).toMatchObject({ from: 'c' })
    expect(b.check(header, covered)).toBe('stale')
  })
})

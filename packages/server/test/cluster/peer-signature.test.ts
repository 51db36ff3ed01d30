import { describe, expect, test } from 'vitest'
import { digestOf, PeerSignature } from '../../src/cluster/peer-protocol.ts'

const DIGEST = digestOf('{}')
let millis = 0
const leaderRow = (changes = {}) => ({
  leaderTerm: 't',
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

describe('a request of another node', () => {
  test('is accepted once and cannot be replayed', () => {
    const [a, b] = [node('a'), node('b')]
    const { header } = a.sign('handOff', 'b', DIGEST)
    expect(b.check('handOff', header)).toEqual({ from: 'a', to: 'b', number: 1, digest: DIGEST })
    expect(b.check('handOff', header)).toBe('repeated')
  })

  test('may be overtaken by others of the same node', () => {
    const [a, b] = [node('a'), node('b')]
    const headers = Array.from({ length: 300 }, () => a.sign('task', 'b', DIGEST).header)
    for (const header of headers.toReversed()) expect(b.check('task', header)).toMatchObject({ from: 'a' })
    for (const header of headers) expect(b.check('task', header)).toBe('repeated')
  })

  test.each([
    ['for another verb', (header: string) => ['control', header]],
    ['with another body', (header: string) => ['task', header.replace(DIGEST, digestOf('[]'))]],
    ['for another node', (header: string) => ['task', header.replace(' b ', ' x ')]],
    ['under another name', (header: string) => ['task', header.replace(/^a/, 'x')]],
    ['with a number of its own', (header: string) => ['task', header.replace(' 1 ', ' 2 ')]],
    ['without a signature', (header: string) => ['task', header.slice(0, header.lastIndexOf(' '))]],
    ['with half a signature', (header: string) => ['task', header.slice(0, -4)]],
    ['with an empty header', () => ['task', '']],
    ['without the header', () => ['task', undefined]],
  ] as const)('is refused %s', (_, forge) => {
    const [a, b] = [node('a'), node('b')]
    const [verb, header] = forge(a.sign('task', 'b', DIGEST).header)
    expect(b.check(verb as string, header)).toBe('unsigned')
  })

  test('is refused with another secret, or from another cluster', () => {
    const b = node('b')
    expect(b.check('task', node('a', { secret: 'guessed' }).sign('task', 'b', DIGEST).header)).toBe(
      'unsigned',
    )
    expect(b.check('task', node('a', { clusterId: 'd' }).sign('task', 'b', DIGEST).header)).toBe('unsigned')
  })

  test('is refused by a node that does not know the secret yet', () => {
    const unknowing = new PeerSignature('a', () => millis)
    expect(new PeerSignature('b').check('task', unknowing.sign('task', 'b', DIGEST).header)).toBe('unsigned')
  })

  test('is refused when it is old; the clocks of machines do not matter', () => {
    const [a, b] = [node('a'), node('b')]
    const { header } = a.sign('task', 'b', DIGEST)
    millis += 61_000
    expect(b.check('task', header)).toBe('stale')
    // Another machine with another uptime: both use the clock of the database.
    const elsewhere = new PeerSignature('e', () => 5)
    elsewhere.learn(leaderRow())
    expect(b.check('task', elsewhere.sign('task', 'b', DIGEST).header)).toMatchObject({ from: 'e' })
  })

  test('is still refused after its sender was forgotten', () => {
    const [a, b] = [node('a'), node('b')]
    const { header } = a.sign('task', 'b', DIGEST)
    b.check('task', header)
    millis += 200_000
    expect(b.check('task', node('c').sign('task', 'b', DIGEST).header)).toMatchObject({ from: 'c' })
    expect(b.check('task', header)).toBe('stale')
  })
})

test('a hello proves the node, its term, and that it answers this request', () => {
  const [a, b] = [node('a'), node('b')]
  const { number } = a.sign('hints', 'b', DIGEST)
  const mac = b.signHello('term', { from: 'a', number })
  expect(a.isHello(mac, 'term', 'b', number)).toBe(true)
  expect(a.isHello(mac, 'other', 'b', number)).toBe(false)
  expect(a.isHello(mac, 'term', 'c', number)).toBe(false)
  expect(a.isHello(mac, 'term', 'b', number + 1)).toBe(false)
  expect(
    a.isHello(node('b', { secret: 'guessed' }).signHello('term', { from: 'a', number }), 'term', 'b', number),
  ).toBe(false)
})

import { describe, expect, test } from 'vitest'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { noTokens } from '../../src/http/admission/tokens.ts'
import { keyOwners, ownedKey } from '../../src/http/requests/preferences.ts'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { descriptors, leaseId, TestApp } from '../support/test-app.ts'

/** Tokens of two workers, one of which is about to rotate its token. */
const tokens = [
  { name: 'one', token: tokenNamed('one'), roles: ['worker', 'producer'] },
  { name: 'one', token: tokenNamed('next'), roles: ['worker', 'producer'] },
  { name: 'other', token: tokenNamed('other'), roles: ['worker', 'producer'] },
]

/**
 * A service with three partitions, and pulls with the key `job-1`: through the fast path, or, with a query,
 * through Fastify.
 */
async function pulling(path: string, changed = {}, headers: Readonly<Record<string, string>> = {}) {
  const baton = await TestApp.open(changed)
  const called = await baton.post('/call-back', descriptors('orders', 3), headers)
  expect(called.status).toBe(200)
  const port = await listening(baton.app)
  return async (by: Readonly<Record<string, string>>): Promise<string> => {
    const client = await RawConnection.open(port)
    const lines = Object.entries({ Host: 'localhost', 'Idempotency-Key': 'job-1', ...by })
    client.send(
      `GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    )
    const { status, body } = await client.answer()
    expect(status).toBe(200)
    return leaseId(body.partitions[0])
  }
}

describe.each(['/pull', '/pull?'])('a key on %s', (path) => {
  test('used by a token of another name is a different key', async () => {
    const one = { ...bearer(tokenNamed('one')), 'x-instance-id': 'loader' }
    const other = { ...bearer(tokenNamed('other')), 'x-instance-id': 'loader' }
    const pull = await pulling(path, { tokensFile: await tokensFile({ tokens }) }, one)
    const lease = await pull(one)
    expect(await pull(other)).not.toBe(lease)
    const again = `bearer  ${tokenNamed('one')}`
    expect(await pull({ authorization: again, 'x-instance-id': 'elsewhere' })).toBe(lease)
    expect(await pull(bearer(tokenNamed('next')))).toBe(lease)
  })

  test('without tokens belongs to the instance that names itself, whatever token it sends', async () => {
    const pull = await pulling(path)
    const lease = await pull({ 'x-instance-id': 'loader-1', authorization: 'Bearer one' })
    expect(await pull({ 'x-instance-id': 'loader-2' })).not.toBe(lease)
    expect(await pull({ 'x-instance-id': 'loader-1', authorization: 'Bearer other' })).toBe(lease)
  })

  test('is shared by all clients without a name', async () => {
    const pull = await pulling(path)
    const lease = await pull({})
    expect(await pull({ 'x-instance-id': 'loader-1' })).not.toBe(lease)
    expect(await pull({})).toBe(lease)
  })
})

test('the key of a settle that pulls belongs to its sender, too', async () => {
  const baton = await TestApp.open()
  await baton.callBack(...descriptors('orders', 2))
  const unknown = { leaseId: '1-1-aaaaaaaaaaaaaaaa', outcome: 'done' }
  const settle = async (instance: string) => {
    const headers = { 'x-instance-id': instance, 'idempotency-key': 'job-1', prefer: 'batch=1' }
    return leaseId((await baton.post('/settle', [unknown], headers)).body.partitions[0])
  }
  const lease = await settle('loader-1')
  expect(await settle('loader-2')).not.toBe(lease)
  expect(await settle('loader-1')).toBe(lease)
})

test('no key of one owner can be spelt as that of another', () => {
  const open = { maxOpenTasks: 1, maxWaitingPartitions: 1 }
  const limits = { tasks: null, tables: null, maxWeight: 1, lowestLevel: 0, ...open }
  const token = { name: 'one', roles: new Set<string>(), ...limits }
  const owners = [
    keyOwners({ ...noTokens, of: () => token })({}, 'one'),
    keyOwners(null)({ authorization: 'Bearer one' }, 'one'),
    keyOwners(null)({}, null),
    keyOwners(null)({}, 'anyone'),
  ]
  const marks = owners.map((owner) => ownedKey('', owner))
  expect(new Set(marks).size).toBe(owners.length)
  expect(marks.map((mark) => mark.length)).toEqual(marks.map(() => 23))
  // Keys that begin with the time are adjacent in the store.
  expect(['k-1', 'k-2'].map((key) => ownedKey(key, 'b').startsWith(key))).toEqual([true, true])
})

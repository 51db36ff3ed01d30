import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatLeaseId, leaseSecrets, parseLeaseId, SECRET_BYTES } from '../../src/handoff/lease-id.ts'

const secret = fc
  .uint8Array({ minLength: SECRET_BYTES, maxLength: SECRET_BYTES })
  .map((bytes) => Buffer.from(bytes).toString('base64url'))
const positive = fc.oneof(
  fc.integer({ min: 1, max: 1000 }),
  fc.maxSafeNat().map((n) => Math.max(1, n)),
)

test('a lease id is parsed to what it was formatted from', () => {
  fc.assert(
    fc.property(positive, positive, secret, (partition, leaseNumber, text) => {
      const lease = { partition, leaseNumber, secret: text }
      expect(parseLeaseId(formatLeaseId(lease))).toEqual(lease)
    }),
  )
})

test('secrets are valid in a lease id, and no two are the same', () => {
  const next = leaseSecrets()
  const secrets = Array.from({ length: 5000 }, next)
  expect(new Set(secrets).size).toBe(5000)
  for (const text of secrets) expect(parseLeaseId(`1-1-${text}`)?.secret).toBe(text)
})

test('a lease id has one spelling: every id that can be parsed was formatted so', () => {
  const piece = fc.oneof(
    fc.stringMatching(/^[0-9a-zA-Z]{1,12}$/),
    fc.constantFrom('', '0', '01', '1', '-1', '1.5'),
  )
  fc.assert(
    fc.property(piece, piece, fc.oneof(secret, fc.string()), (partition, leaseNumber, text) => {
      const id = `${partition}-${leaseNumber}-${text}`
      const lease = parseLeaseId(id)
      if (lease !== undefined) expect(formatLeaseId(lease)).toBe(id)
    }),
  )
})

test('an id that this service cannot have issued is not a lease', () => {
  const good = '1-1-AAAAAAAAAAAAAAAA'
  expect(parseLeaseId(good)).toEqual({ partition: 1, leaseNumber: 1, secret: 'A'.repeat(16) })
  const strange = [
    '',
    'x',
    '1-1-',
    '0-1-AAAAAAAAAAAAAAAA',
    '1-0-AAAAAAAAAAAAAAAA',
    '01-1-AAAAAAAAAAAAAAAA',
    'A-1-AAAAAAAAAAAAAAAA',
    'zzzzzzzzzzz-1-AAAAAAAAAAAAAAAA',
    `${good}A`,
    `${good} `,
    `\n${good}`,
    `${good}\n`,
    '1-1-AAAAAAAAAAAAAAA+',
    '1-1-ÄAAAAAAAAAAAAAAA',
  ]
  for (const id of strange) expect(parseLeaseId(id), JSON.stringify(id)).toBeUndefined()
})

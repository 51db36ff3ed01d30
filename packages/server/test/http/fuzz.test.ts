import { expect, test } from 'vitest'
import { Dice, fuzzSeed, mutateBytes, mutateValue, randomBytes } from '../support/mutation.ts'
import { descriptor, isEmbedded, leaseId, TestApp } from '../support/test-app.ts'

/**
 * Bodies are validated before any store sees them, so with a server behind the store, fewer bodies test as
 * much. Each run has another seed; after changes to request parsing, try more with FUZZ_BODIES.
 */
const BODIES = Number(process.env['FUZZ_BODIES'] ?? (isEmbedded() ? 3_000 : 600))
const AT_ONCE = 50

/** Valid bodies for every POST endpoint, to be mutated. Leases change during the test. */
const targets = (dice: Dice, leases: readonly string[]): [string, unknown][] => {
  const task = `t-${dice.below(8)}`
  const of = (level: number) => descriptor(task, level, dice.below(40), { record_count: dice.below(1000) })
  const [one = '1-1-aaaaaaaaaaaaaaaa', two = 'x'] = [dice.pick(leases), dice.pick(leases)]
  const outcome = dice.pick(['done', 'failed', 'released'])
  return [
    ['/call-back', [of(0), of(0), of(1), of(2)]],
    ['/call-back', [of(dice.below(3))]],
    ['/settle', [{ leaseId: one, outcome, reason: 'why', retryAfterSeconds: 0.5 }]],
    [
      '/settle',
      [
        { leaseId: one, outcome: 'failed', final: true },
        { leaseId: two, outcome, records: 5 },
      ],
    ],
    ['/renew', [one, two]],
    ['/renew', [{ leaseId: one, checkpoint: 'page 7', progress: { records: 9 } }]],
    [`/tasks/${task}/pause`, {}],
    [`/tasks/${task}/resume`, {}],
    [`/tasks/${task}/retry`, { level: 0, done: dice.below(2) === 0 }],
    [`/tasks/${task}/retry`, { partitions: [`${task}-0-1`, `${task}-0-2`, `${task}-0-1`], done: true }],
    [`/tasks/${task}/seal`, { partitions: 4 }],
    [`/tasks/${task}/skip-parked`, {}],
    [`/tasks/${task}/level-barrier`, { enabled: dice.below(2) === 0 }],
    ...(dice.below(50) === 0 ? [[`/tasks/${task}/cancel`, {}] as [string, unknown]] : []),
  ]
}

function bodyFrom(valid: unknown, dice: Dice): Buffer {
  const roll = dice.below(20)
  if (roll === 0) return randomBytes(dice)
  if (roll < 3) return Buffer.from(JSON.stringify(valid))
  if (roll < 8) return mutateBytes(JSON.stringify(valid), dice)
  return Buffer.from(JSON.stringify(mutateValue(valid, dice)) ?? '')
}

async function storedPartitions(baton: TestApp): Promise<number> {
  let total = 0
  let cursor = ''
  do {
    const { body } = await baton.get(`/tasks?limit=1000${cursor}`)
    for (const { partitions } of body.tasks) total += partitions.total
    cursor = body.next === null ? '' : `&cursor=${body.next}`
  } while (cursor !== '')
  return total
}

test(`${BODIES} random and mutated bodies: no failure, no half-stored array, no counter that is off (FUZZ_SEED=${fuzzSeed})`, async () => {
  const dice = new Dice(fuzzSeed)
  const baton = await TestApp.open()
  const statuses = new Map<number, number>()
  let leases: string[] = []
  let accepted = 0
  const send = async () => {
    const [path, valid] = dice.pick(targets(dice, leases))
    const raw = bodyFrom(valid, dice)
    const prefer = dice.below(10) === 0 ? { prefer: 'batch=2' } : {}
    const headers = { 'content-type': 'application/json', ...prefer }
    const answer = await baton.ask('POST', path, { raw, headers })
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    if (answer.status >= 500) {
      throw new Error(`POST ${path} was answered ${answer.status} for ${raw.toString('base64')}`)
    }
    if (path === '/call-back' && answer.status === 200) accepted += answer.body.accepted
  }
  for (let sent = 0; sent < BODIES; sent += AT_ONCE) {
    if (sent % 1000 === 0) leases = (await baton.pull({ prefer: 'batch=100' })).map(leaseId)
    await Promise.all(Array.from({ length: AT_ONCE }, send))
  }
  // Whether random bodies conflict with what is stored is left to chance; these do.
  const conflicting = descriptor('conflict', 0, 0, { record_count: 1 })
  await baton.callBack(conflicting)
  accepted += 1
  const otherwise = await baton.ask('POST', '/call-back', { body: [{ ...conflicting, record_count: 2 }] })
  expect(otherwise.status).toBe(409)
  expect(await storedPartitions(baton)).toBe(accepted)
  await baton.expectSound()
  // The test is useful only if the bodies reached every kind of answer.
  expect([...statuses.keys()].sort()).toEqual(expect.arrayContaining([200, 400, 404, 422]))
  expect((await baton.get('/readyz')).status).toBe(200)
}, 240_000)

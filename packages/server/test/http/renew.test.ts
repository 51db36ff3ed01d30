import { describe, expect, test } from 'vitest'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

describe('POST /renew', () => {
  test('extends a lease by its full length from now', async () => {
    let now = Date.UTC(2026, 2, 1, 12)
    const baton = await TestApp.open({}, { clock: () => now })
    await baton.callBack(descriptor('orders', 0, 1))
    const id = leaseId((await baton.pull())[0])
    now += 60_000
    const answer = await baton.post('/renew', [id])
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      renewed: [{ leaseId: id, expiresAt: '2026-03-01T12:06:00.000Z', expiresInSeconds: 300 }],
      refused: [],
    })
  })

  test('refuses each lease for its own reason and renews the others', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const [settled, live] = (await baton.pull({ prefer: 'batch=2' })).map(leaseId)
    await baton.post('/settle', [{ leaseId: settled, outcome: 'done' }])
    const answer = await baton.post('/renew', [settled, 'never given out', live])
    expect(answer.body).toMatchObject({
      renewed: [{ leaseId: live }],
      refused: [
        { leaseId: settled, code: 'lease_settled' },
        { leaseId: 'never given out', code: 'lease_unknown' },
      ],
    })
  })

  test('names invalid lease ids by position', async () => {
    const baton = await TestApp.open()
    const answer = await baton.post('/renew', ['fine', 7, ''])
    expect(answer.status).toBe(422)
    expect(answer.body.errors).toMatchObject([{ pointer: '/1' }, { pointer: '/2' }])
  })

  test('records the worker as seen', async () => {
    const baton = await TestApp.open()
    await baton.post('/renew', ['never given out'], { 'x-instance-id': 'loader-7' })
    const { body } = await baton.get('/test/instance-status?instanceId=loader-7')
    expect(body).toMatchObject({ role: 'worker', status: 'up' })
  })
})

describe('POST /renew with progress and a checkpoint', () => {
  const leased = async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const [first, second] = (await baton.pull({ prefer: 'batch=2', 'x-instance-id': 'w' })).map(leaseId)
    return { baton, first, second }
  }

  test('shows both until the lease ends, and the next lease carries the checkpoint', async () => {
    const { baton, first, second } = await leased()
    const progress = { records: 40, note: 'x'.repeat(300), ignored: true }
    const answer = await baton.post('/renew', [{ leaseId: first, progress, checkpoint: 'page "2"' }, second])
    expect(answer.body).toMatchObject({ renewed: [{ leaseId: first }, { leaseId: second }], refused: [] })
    const shown = { records: 40, note: 'x'.repeat(256), at: expect.any(String) }
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions[0]).toMatchObject({ progress: shown, checkpoint: 'page "2"' })
    expect(body.partitions[1]).not.toHaveProperty('progress')
    const held = await baton.get('/instances/w/leases')
    expect(held.body.leases).toMatchObject([{ progress: shown, checkpoint: 'page "2"' }, {}])
    await baton.post('/settle', [{ leaseId: first, outcome: 'released', checkpoint: 'page "3"' }])
    const [again] = await baton.pull()
    expect(again?.lease).toMatchObject({ attempt: 1, checkpoint: 'page "3"' })
  })

  test('refuses the lease whose checkpoint is too long, and changes nothing of it', async () => {
    const { baton, first, second } = await leased()
    const checkpoint = 'ä'.repeat(2049)
    const renewed = await baton.post('/renew', [
      { leaseId: first, checkpoint },
      { leaseId: second, checkpoint: 'ok' },
    ])
    expect(renewed.status).toBe(200)
    expect(renewed.body).toMatchObject({
      renewed: [{ leaseId: second }],
      refused: [{ leaseId: first, code: 'checkpoint_too_long' }],
    })
    const settled = await baton.post('/settle', [{ leaseId: first, outcome: 'failed', checkpoint }])
    expect(settled.body).toMatchObject({ settled: [], refused: [{ code: 'checkpoint_too_long' }] })
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions).toMatchObject([{ state: 'leased' }, { checkpoint: 'ok' }])
    expect(body.partitions[0]).not.toHaveProperty('checkpoint')
  })

  test('the first mention of a lease counts', async () => {
    const { baton, first } = await leased()
    const answer = await baton.post('/renew', [
      { leaseId: first, checkpoint: 'first' },
      { leaseId: first, checkpoint: 'second' },
    ])
    expect(answer.body.renewed).toMatchObject([{ leaseId: first }, { leaseId: first }])
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions[0]).toMatchObject({ checkpoint: 'first' })
  })

  test.each([
    [{ checkpoint: 7 }, '/0/checkpoint', 'checkpoint must be a string, or null, got the number 7'],
    [
      { checkpoint: 'a\0' },
      '/0/checkpoint',
      'checkpoint must not contain NUL characters or lone surrogates, or null, got the string "a\\u0000"',
    ],
    [{ progress: 5 }, '/0/progress', 'progress must be an object, got the number 5'],
    [{ progress: null }, '/0/progress', 'progress must be an object, got null'],
    [
      { progress: { records: -1 } },
      '/0/progress/records',
      'records must be a non-negative integer, got the number -1',
    ],
    [{ progress: { note: [] } }, '/0/progress/note', 'note must be a string, got an empty array'],
  ])('refuses %j by its place', async (changes, pointer, detail) => {
    const { baton, first, second } = await leased()
    const answer = await baton.post('/renew', [
      { leaseId: first, ...changes },
      { leaseId: second, checkpoint: 'ok' },
    ])
    expect(answer.status).toBe(422)
    expect(answer.body.errors).toEqual([{ pointer, detail }])
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions[1]).not.toHaveProperty('checkpoint')
  })

  test.each([
    [{ outcome: 'failed', checkpoint: 7 }, '/0/checkpoint'],
    [{ outcome: 'released', checkpoint: '\ud800' }, '/0/checkpoint'],
  ])('a settle refuses %j by its place', async (changes, pointer) => {
    const { baton, first } = await leased()
    const answer = await baton.post('/settle', [{ leaseId: first, ...changes }])
    expect(answer.status).toBe(422)
    expect(answer.body.errors).toMatchObject([{ pointer }])
  })

  test('an element without a lease id is refused', async () => {
    const { baton, first } = await leased()
    const answer = await baton.post('/renew', [{ checkpoint: 'x' }, [], first])
    expect(answer.status).toBe(422)
    expect(answer.body.errors).toMatchObject([{ pointer: '/0/leaseId' }, { pointer: '/1' }])
  })
})

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

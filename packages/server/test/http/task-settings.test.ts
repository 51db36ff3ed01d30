import { describe, expect, test } from 'vitest'
import { descriptor, TestApp } from '../support/test-app.ts'

const defaults = {
  leaseSeconds: 300,
  maxAttempts: 5,
  backoffSeconds: 10,
  backoffMaxSeconds: 600,
  levelBarrier: false,
  maxLeases: null,
  weight: 1,
  own: [],
}

describe('settings of a task', () => {
  test('are put, shown, and replaced as a whole', async () => {
    const baton = await TestApp.open()
    const put = (body: unknown) => baton.ask('PUT', '/tasks/a/settings', { body })
    const first = await put({ leaseSeconds: 1.5, maxLeases: 1 })
    const own = ['leaseSeconds', 'maxLeases']
    expect(first.body).toEqual({
      taskId: 'a',
      settings: { ...defaults, leaseSeconds: 1.5, maxLeases: 1, own },
    })
    expect((await baton.get('/tasks/a')).status).toBe(404)
    await baton.callBack(descriptor('a', 0, 0), descriptor('a', 0, 1))
    const [partition] = await baton.pull({ prefer: 'batch=5' })
    expect(partition?.lease?.expiresInSeconds).toBe(1.5)
    expect((await baton.get('/tasks/a')).body.settings).toMatchObject({ leaseSeconds: 1.5, own })
    expect((await put({})).body.settings).toEqual(defaults)
    expect((await baton.get('/tasks/a')).body.settings).toEqual(defaults)
    await baton.expectSound()
  })

  test('can be sent with a call-back', async () => {
    const baton = await TestApp.open()
    const callBack = (settings: string) =>
      baton.post('/call-back', [descriptor('a', 0, 0)], { 'task-settings': settings })
    expect((await callBack('lease-seconds=60, Weight = 2,level-barrier=true')).status).toBe(200)
    expect((await baton.get('/tasks/a')).body.settings).toMatchObject({
      leaseSeconds: 60,
      weight: 2,
      levelBarrier: true,
      own: ['leaseSeconds', 'levelBarrier', 'weight'],
    })
    for (const [text, says] of [
      ['leese-seconds=60', 'did you mean lease-seconds?'],
      ['weight=0', 'weight must'],
      ['weight', 'weight must'],
      ['weight=1=2', 'weight must have exactly one value'],
      ['weight=1, weight=2', 'weight must not be repeated'],
      ['level-barrier=maybe', 'level-barrier must be true or false'],
      ['max-leases=1.5', 'max-leases must be'],
    ] as const) {
      const { status, body } = await callBack(text)
      expect([status, body.code, body.detail]).toEqual([
        422,
        'parameter_invalid',
        expect.stringContaining(says),
      ])
    }
  })

  test('are refused if they are invalid', async () => {
    const baton = await TestApp.open()
    const put = (body: unknown) => baton.ask('PUT', '/tasks/a/settings', { body })
    const { status, body } = await put({ leaseSecond: 5, maxLeases: 0, weight: 'much' })
    expect([status, body.code]).toEqual([422, 'contract_violation'])
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
      '/leaseSecond',
      '/maxLeases',
      '/weight',
    ])
    await baton.callBack(descriptor('a', 0, 0))
    await baton.post('/tasks/a/cancel')
    expect((await put({ weight: 2 })).body.code).toBe('task_cancelled')
  })

  test('are refused if the maximum back-off is less than the first', async () => {
    const baton = await TestApp.open()
    const put = (body: unknown) => baton.ask('PUT', '/tasks/a/settings', { body })
    const call = (settings: string) =>
      baton.post('/call-back', [descriptor('a', 0, 0)], { 'task-settings': settings })
    const refused = await put({ backoffSeconds: 100, backoffMaxSeconds: 10 })
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      [{ pointer: '/backoffMaxSeconds', detail: 'backoffMaxSeconds must not be less than backoffSeconds' }],
    ])
    const called = await call('backoff-seconds=100, backoff-max-seconds=10')
    expect([called.status, called.body.detail]).toEqual([
      422,
      'Task-Settings: backoff-max-seconds must not be less than backoff-seconds',
    ])
    for (const body of [
      { backoffSeconds: 10, backoffMaxSeconds: 10 },
      { backoffSeconds: 1000 },
      { backoffMaxSeconds: 0 },
    ])
      expect([body, (await put(body)).status]).toEqual([body, 200])
    expect((await call('backoff-seconds=1000')).status).toBe(200)
  })

  test('may include a level barrier only in a delivery mode with leases', async () => {
    const baton = await TestApp.open({ delivery: 'at-most-once' })
    const put = await baton.ask('PUT', '/tasks/a/settings', { body: { levelBarrier: true } })
    expect([put.status, put.body.errors[0].pointer]).toEqual([422, '/levelBarrier'])
    const called = await baton.post('/call-back', [descriptor('a', 0, 0)], {
      'task-settings': 'level-barrier=true',
    })
    expect([called.status, called.body.code]).toEqual([422, 'parameter_invalid'])
  })
})

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
  test('are changed one by one, and shown', async () => {
    const baton = await TestApp.open()
    const change = (body: unknown) => baton.ask('PATCH', '/tasks/a/settings', { body })
    const show = () => baton.get('/tasks/a/settings')
    expect([(await show()).status, (await show()).body.code]).toEqual([404, 'task_unknown'])
    const first = await change({ leaseSeconds: 1.5, maxLeases: 1 })
    const own = ['leaseSeconds', 'maxLeases']
    const settings = { ...defaults, leaseSeconds: 1.5, maxLeases: 1, own }
    expect(first.body).toEqual({ taskId: 'a', settings })
    expect((await show()).body).toEqual({ taskId: 'a', settings })
    expect((await baton.get('/tasks/a')).status).toBe(404)
    await baton.callBack(descriptor('a', 0, 0), descriptor('a', 0, 1))
    const [partition] = await baton.pull({ prefer: 'batch=5' })
    expect(partition?.lease?.expiresInSeconds).toBe(1.5)
    expect((await baton.get('/tasks/a')).body.settings).toEqual(settings)
    expect((await change({})).body.settings).toEqual(settings)
    expect((await change({ weight: 2, leaseSeconds: null })).body.settings).toEqual({
      ...defaults,
      maxLeases: 1,
      weight: 2,
      own: ['maxLeases', 'weight'],
    })
    expect((await change({ weight: null, maxLeases: null })).body.settings).toEqual(defaults)
    expect((await baton.get('/tasks/a')).body.settings).toEqual(defaults)
    expect((await baton.ask('PUT', '/tasks/a/settings', { body: {} })).status).toBe(405)
    await baton.expectSound()
  })

  test('include the level barrier of the service', async () => {
    const baton = await TestApp.open({ levelBarrier: true })
    const change = async (levelBarrier: boolean | null) =>
      (await baton.ask('PATCH', '/tasks/a/settings', { body: { levelBarrier } })).body.settings
    expect(await change(false)).toMatchObject({ levelBarrier: false, own: ['levelBarrier'] })
    expect(await change(null)).toMatchObject({ levelBarrier: true, own: [] })
    await baton.post('/call-back', [descriptor('a', 0, 0)], { 'task-settings': 'level-barrier=false' })
    expect((await baton.get('/tasks/a')).body.levelBarrier).toBe(false)
    await baton.post('/call-back', [descriptor('a', 0, 0)], { 'task-settings': 'level-barrier=null' })
    expect((await baton.get('/tasks/a')).body.levelBarrier).toBe(true)
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
    expect((await callBack('weight=null, max-attempts=2')).status).toBe(200)
    expect((await baton.get('/tasks/a/settings')).body.settings.own).toEqual([
      'leaseSeconds',
      'maxAttempts',
      'levelBarrier',
    ])
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
    const change = (body: unknown) => baton.ask('PATCH', '/tasks/a/settings', { body })
    const { status, body } = await change({ leaseSecond: 5, maxLeases: 0, weight: 'much' })
    expect([status, body.code]).toEqual([422, 'contract_violation'])
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
      '/leaseSecond',
      '/maxLeases',
      '/weight',
    ])
    await baton.callBack(descriptor('a', 0, 0))
    await baton.post('/tasks/a/cancel')
    expect((await change({ weight: 2 })).body.code).toBe('task_cancelled')
  })

  test('are refused if the maximum back-off is less than the first', async () => {
    const baton = await TestApp.open()
    const change = (body: unknown) => baton.ask('PATCH', '/tasks/a/settings', { body })
    const call = (settings: string) =>
      baton.post('/call-back', [descriptor('a', 0, 0)], { 'task-settings': settings })
    const shorter = 'backoffMaxSeconds of the task must not be less than its backoffSeconds'
    const refused = await change({ backoffSeconds: 100, backoffMaxSeconds: 10 })
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      [{ pointer: '/backoffMaxSeconds', detail: shorter }],
    ])
    const called = await call('backoff-seconds=100, backoff-max-seconds=10')
    expect([called.status, called.body.detail]).toEqual([
      422,
      'Task-Settings: backoff-max-seconds of the task must not be less than its backoff-seconds; nothing was stored',
    ])
    expect((await baton.get('/tasks/a/settings')).status).toBe(404)
    for (const body of [
      { backoffSeconds: 10, backoffMaxSeconds: 10 },
      { backoffSeconds: 1000, backoffMaxSeconds: null },
      { backoffSeconds: null, backoffMaxSeconds: 0 },
      { backoffMaxSeconds: 20 },
    ])
      expect([body, (await change(body)).status]).toEqual([body, 200])
    // The other one was set before.
    const first = await change({ backoffSeconds: 21, weight: 2 })
    expect([first.status, first.body.errors]).toEqual([
      422,
      [{ pointer: '/backoffSeconds', detail: shorter }],
    ])
    expect((await call('backoff-seconds=21')).status).toBe(422)
    expect((await baton.get('/tasks/a')).status).toBe(404)
    expect((await baton.get('/tasks/a/settings')).body.settings).toMatchObject({
      backoffMaxSeconds: 20,
      own: ['backoffMaxSeconds'],
    })
    expect((await call('backoff-seconds=20')).status).toBe(200)
  })

  test('may include a level barrier only in a delivery mode with leases', async () => {
    const baton = await TestApp.open({ delivery: 'at-most-once' })
    const changed = await baton.ask('PATCH', '/tasks/a/settings', { body: { levelBarrier: true } })
    expect([changed.status, changed.body.errors[0].pointer]).toEqual([422, '/levelBarrier'])
    const called = await baton.post('/call-back', [descriptor('a', 0, 0)], {
      'task-settings': 'level-barrier=true',
    })
    expect([called.status, called.body.code]).toEqual([422, 'parameter_invalid'])
  })
})

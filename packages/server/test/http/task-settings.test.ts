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
  pauseAfterFailures: null,
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
      ['pause-after-failures=half', 'must be a share and a number of attempts, such as 0.5/20, or null'],
      ['pause-after-failures=2/20', 'pause-after-failures must be SHARE/OF, and share must'],
      ['pause-after-failures=0.5/1001', 'pause-after-failures must be SHARE/OF, and of must'],
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

  test('may include a limit only in a delivery mode with leases', async () => {
    const baton = await TestApp.open({ delivery: 'at-most-once' })
    const headers = { 'task-settings': 'max-leases=2' }
    const refused = await baton.post('/call-back', [descriptor('orders', 0, 0)], headers)
    expect([refused.status, refused.body.detail]).toEqual([
      422,
      'Task-Settings: max-leases requires leases, and this service delivers at most once',
    ])
    expect((await baton.get('/tasks/orders')).status).toBe(404)
    await baton.callBack(descriptor('orders', 0, 0))
    const changed = await baton.ask('PATCH', '/tasks/orders/settings', { body: { maxLeases: 2, weight: 3 } })
    expect([changed.status, changed.body.errors]).toEqual([
      422,
      [{ pointer: '/maxLeases', detail: 'a limit requires leases, and this service delivers at most once' }],
    ])
    expect((await baton.get('/tasks/orders/settings')).body.settings).toMatchObject({ weight: 1 })
    const reset = await baton.ask('PATCH', '/tasks/orders/settings', { body: { maxLeases: null } })
    expect(reset.status).toBe(200)
  })

  test('may include a pause after failures, which says what is wrong with it', async () => {
    const baton = await TestApp.open()
    const change = (pauseAfterFailures: unknown) =>
      baton.ask('PATCH', '/tasks/a/settings', { body: { weight: 2, pauseAfterFailures } })
    for (const [value, pointers] of [
      [0.5, ['/pauseAfterFailures']],
      [[0.5, 20], ['/pauseAfterFailures']],
      ['0.5/20', ['/pauseAfterFailures']],
      [{}, ['/pauseAfterFailures/share', '/pauseAfterFailures/of']],
      [{ share: 0.5 }, ['/pauseAfterFailures/of']],
      [{ share: 0, of: 0 }, ['/pauseAfterFailures/share', '/pauseAfterFailures/of']],
      [{ share: 1.1, of: 1001 }, ['/pauseAfterFailures/share', '/pauseAfterFailures/of']],
      [{ share: null, of: 2.5 }, ['/pauseAfterFailures/share', '/pauseAfterFailures/of']],
      [{ share: 0.5, of: 20, off: 3 }, ['/pauseAfterFailures/off']],
    ] as const) {
      const { status, body } = await change(value)
      const found = body.errors?.map(({ pointer }: { pointer: string }) => pointer)
      expect([value, status, body.code, found]).toEqual([value, 422, 'contract_violation', pointers])
    }
    expect((await baton.get('/tasks/a/settings')).status).toBe(404)
    const least = { share: 0.001, of: 1 }
    expect((await change(least)).body.settings).toMatchObject({ pauseAfterFailures: least })
    const headers = { 'task-settings': 'pause-after-failures=1/1000' }
    expect((await baton.post('/call-back', [descriptor('a', 0, 0)], headers)).status).toBe(200)
    expect((await baton.get('/tasks/a')).body.settings).toMatchObject({
      pauseAfterFailures: { share: 1, of: 1000 },
      own: ['weight', 'pauseAfterFailures'],
    })
    expect((await change(null)).body.settings).toMatchObject({ pauseAfterFailures: null, own: ['weight'] })
  })

  test('pause the task after failures, which its view, its feed and an event say', async () => {
    const baton = await TestApp.open()
    const created = await baton.post('/subscriptions', { types: ['task.paused'] })
    await baton.callBack(descriptor('a', 0, 0), descriptor('a', 0, 1))
    const body = { pauseAfterFailures: { share: 0.5, of: 2 } }
    await baton.ask('PATCH', '/tasks/a/settings', { body })
    const pulled = await baton.pull({ prefer: 'batch=2' })
    await baton.post(
      '/settle',
      pulled.map(({ lease }, at) => ({ leaseId: lease?.id, outcome: at === 0 ? 'done' : 'failed' })),
    )
    const because = '1 of the last 2 attempts failed or expired'
    const at = expect.any(String)
    const { state, control } = (await baton.get('/tasks/a')).body
    expect([state, control.paused]).toEqual(['paused', { at, name: null, because }])
    const [entry] = (await baton.get('/tasks/a/feed')).body.entries
    expect(entry).toMatchObject({ event: 'pause', name: null, request: { because } })
    const { events } = (await baton.get(`/subscriptions/${created.body.id}/events`)).body
    expect(events).toMatchObject([{ type: 'task.paused', subject: 'a', data: { taskId: 'a', because } }])
    expect(events[0].data).not.toHaveProperty('endedAt')
    await baton.post('/tasks/a/resume')
    expect((await baton.get('/tasks/a')).body).toMatchObject({ state: 'open', control: { paused: null } })
    await baton.post('/tasks/a/pause')
    const later = (await baton.get(`/subscriptions/${created.body.id}/events`)).body.events
    expect(later).toMatchObject([{}, { type: 'task.paused', data: { because: null } }])
  })

  test.each([
    ['a pause after failures', { pauseAfterFailures: { share: 0.5, of: 20 } }, 'pause-after-failures=0.5/20'],
    ['a level barrier', { levelBarrier: true }, 'level-barrier=true'],
  ])('may include %s only in a delivery mode with leases', async (_, body, header) => {
    const baton = await TestApp.open({ delivery: 'at-most-once' })
    const changed = await baton.ask('PATCH', '/tasks/a/settings', { body })
    expect([changed.status, changed.body.errors[0].pointer]).toEqual([422, `/${Object.keys(body)[0]}`])
    const called = await baton.post('/call-back', [descriptor('a', 0, 0)], { 'task-settings': header })
    expect([called.status, called.body.code]).toEqual([422, 'parameter_invalid'])
    expect((await baton.get('/tasks/a/settings')).status).toBe(404)
  })
})

import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { SqliteConnection } from '../../src/disk/sqlite/sqlite-connection.ts'
import { descriptor, descriptors, isEmbedded, TestApp } from '../support/test-app.ts'

const tokens = [
  { name: 'orders', token: tokenNamed('orders'), roles: ['producer'] },
  { name: 'orders', token: tokenNamed('next'), roles: ['producer'] },
  { name: 'stock', token: tokenNamed('stock'), roles: ['producer'] },
  { name: 'shared', token: tokenNamed('shared'), roles: ['producer'], tasks: ['ord'], maxWeight: 4 },
  { name: 'late', token: tokenNamed('late'), roles: ['producer'], lowestLevel: 3 },
  { name: 'few', token: tokenNamed('few'), roles: ['producer'], maxOpenTasks: 2 },
  { name: 'small', token: tokenNamed('small'), roles: ['producer'], maxWaitingPartitions: 3000 },
  { name: 'curious', token: tokenNamed('curious'), roles: ['producer', 'viewer'] },
  { name: 'work', token: tokenNamed('work'), roles: ['worker'] },
  { name: 'ops', token: tokenNamed('ops'), roles: ['operator'] },
]
const as = (name: string) => bearer(tokenNamed(name))

async function guarded(): Promise<TestApp> {
  const baton = await TestApp.open({ tokensFile: await tokensFile({ tokens }) })
  expect((await baton.post('/call-back', descriptors('orders', 2), as('orders'))).status).toBe(200)
  return baton
}

describe('a producer', () => {
  test.each(['', '/partitions', '/manifest', '/throughput', '/grid'])(
    'may read what it called back: /tasks/{taskId}%s',
    async (path) => {
      const baton = await guarded()
      expect((await baton.get(`/tasks/orders${path}`, as('orders'))).status).toBe(200)
      // Another token with the same name is the same producer.
      expect((await baton.get(`/tasks/orders${path}`, as('next'))).status).toBe(200)
      const refused = await baton.get(`/tasks/orders${path}`, as('stock'))
      expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
      expect((await baton.get(`/tasks/nothing${path}`, as('stock'))).body.code).toBe('task_unknown')
    },
  )

  test('may seal what it called back, and send no other control request', async () => {
    const baton = await guarded()
    const refused = await baton.post('/tasks/orders/seal', undefined, as('stock'))
    expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
    expect((await baton.post('/tasks/nothing/seal', undefined, as('stock'))).body.code).toBe('task_unknown')
    const { body } = await baton.post('/tasks/orders/seal', { partitions: 2 }, as('orders'))
    expect(body).toEqual({ taskId: 'orders', state: 'open', changed: 1 })
    expect((await baton.post('/tasks/orders/pause', undefined, as('orders'))).body.code).toBe('token_refused')
  })

  test.runIf(isEmbedded())('causes no write to the store with requests that are refused', async () => {
    const baton = await guarded()
    // Rows are flushed from entries, at any time.
    const append = vi.spyOn(SqliteConnection.prototype, 'append')
    onTestFinished(() => void append.mockRestore())
    for (const taskId of ['orders', 'nothing']) {
      await baton.post(`/tasks/${taskId}/seal`, undefined, as('stock'))
      await baton.ask('PATCH', `/tasks/${taskId}/settings`, { body: { maxLeases: 1 }, headers: as('stock') })
    }
    expect(append).not.toHaveBeenCalled()
    expect((await baton.post('/tasks/orders/seal', undefined, as('orders'))).status).toBe(200)
    expect(append).toHaveBeenCalled()
  })

  test('is refused for a task of another, with new partitions or known ones, and gains no right to it', async () => {
    const baton = await guarded()
    for (const array of [descriptors('orders', 2), [descriptor('orders', 1, 0)]]) {
      const refused = await baton.post('/call-back', array, as('stock'))
      expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
      expect(refused.body.detail).toContain('belongs to another producer')
    }
    const settings = { leaseSeconds: 1, maxLeases: 1 }
    const change = (token: string) =>
      baton.ask('PATCH', '/tasks/orders/settings', { body: settings, headers: as(token) })
    const show = (taskId: string, token: string) => baton.get(`/tasks/${taskId}/settings`, as(token))
    expect((await change('stock')).status).toBe(403)
    expect((await show('orders', 'stock')).body.code).toBe('token_limited')
    expect((await baton.get('/tasks/orders', as('ops'))).body).toMatchObject({
      calledBackBy: ['orders'],
      partitions: { total: 2 },
    })
    expect((await change('orders')).status).toBe(200)
    expect((await show('orders', 'orders')).body.settings).toMatchObject(settings)
    expect((await show('orders', 'ops')).body.settings).toMatchObject(settings)
    expect((await show('nothing', 'orders')).status).toBe(404)
  })

  test('sets up no task that nobody has called back, also with prefixes; its settings come with the call-back', async () => {
    const baton = await guarded()
    const change = (token: string) =>
      baton.ask('PATCH', '/tasks/ord-next/settings', { body: { maxLeases: 1 }, headers: as(token) })
    const show = (token: string) => baton.get('/tasks/ord-next/settings', as(token))
    for (const token of ['stock', 'shared']) {
      const refused = await change(token)
      expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
      expect(refused.body.detail).toContain('Task-Settings')
    }
    expect((await show('ops')).body.code).toBe('task_unknown')
    expect((await change('ops')).status).toBe(200)
    for (const token of ['stock', 'shared']) expect((await show(token)).body.code).toBe('token_limited')
    expect((await show('ops')).body.settings.maxLeases).toBe(1)
    const own = { 'task-settings': 'max-leases=2', ...as('orders') }
    expect((await baton.post('/call-back', descriptors('ord-next', 2), own)).status).toBe(200)
    expect((await show('orders')).body.settings.maxLeases).toBe(2)
  })

  test('that may also view changes no task of another', async () => {
    const baton = await guarded()
    expect((await baton.get('/tasks/orders', as('curious'))).status).toBe(200)
    for (const [method, path, body] of [
      ['POST', '/tasks/orders/seal', undefined],
      ['PATCH', '/tasks/orders/settings', { leaseSeconds: 1 }],
      ['POST', '/call-back', [descriptor('orders', 1, 0)]],
    ] as const) {
      const refused = await baton.ask(method, path, { body, headers: as('curious') })
      expect([path, refused.status, refused.body.code]).toEqual([path, 403, 'token_limited'])
    }
    const task = (await baton.get('/tasks/orders', as('ops'))).body
    expect(task).toMatchObject({ sealed: false, partitions: { total: 2 }, settings: { leaseSeconds: 300 } })
  })

  test('sees no tasks of others in the status of an instance', async () => {
    const baton = await guarded()
    for (const token of ['orders', 'stock']) {
      const headers = { ...as(token), 'x-instance-id': 'compute' }
      expect((await baton.post('/call-back', descriptors(`of-${token}`, 2), headers)).status).toBe(200)
    }
    const tasksFor = async (token: string) =>
      (await baton.get('/test/instance-status?instanceId=compute', as(token))).body.tasks.map(
        ({ taskId }: { taskId: string }) => taskId,
      )
    expect(await tasksFor('orders')).toEqual(['of-orders'])
    expect(await tasksFor('stock')).toEqual(['of-stock'])
    expect(await tasksFor('work')).toEqual([])
    expect((await tasksFor('curious')).toSorted()).toEqual(['of-orders', 'of-stock'])
  })

  test('with prefixes shares the tasks that they cover', async () => {
    const baton = await guarded()
    const added = await baton.post('/call-back', [descriptor('orders', 1, 0)], as('shared'))
    expect(added.body.accepted).toBe(1)
    expect((await baton.get('/tasks/orders', as('shared'))).body.calledBackBy).toEqual(['orders', 'shared'])
    expect((await baton.post('/tasks/orders/seal', undefined, as('shared'))).status).toBe(200)
  })

  test('gets a task when an operator gives it the task', async () => {
    const baton = await guarded()
    const give = (token: string) => baton.post('/tasks/orders/owner', { name: 'stock' }, as(token))
    expect((await give('orders')).body.code).toBe('token_refused')
    for (const name of ['', 'a\0b', 'a\ud800', 'a\u009b2J', 'a\nb'])
      expect((await baton.post('/tasks/orders/owner', { name }, as('ops'))).body.code).toBe(
        'contract_violation',
      )
    expect((await give('ops')).body).toMatchObject({ taskId: 'orders', changed: 1 })
    expect((await baton.post('/call-back', [descriptor('orders', 1, 0)], as('stock'))).status).toBe(200)
    expect((await baton.post('/call-back', [descriptor('orders', 1, 1)], as('orders'))).status).toBe(403)
    // The one that had it is still named as one that called it back.
    expect((await baton.get('/tasks/orders', as('stock'))).body.calledBackBy).toEqual(['stock', 'orders'])
    expect((await baton.get('/tasks/orders', as('orders'))).body.code).toBe('token_limited')
    expect((await baton.post('/tasks/orders/seal', undefined, as('orders'))).status).toBe(403)
  })

  test('has a largest weight, 1 unless its token says more, and a lowest level', async () => {
    const baton = await guarded()
    const weigh = (weight: number, token: string) =>
      baton.ask('PATCH', '/tasks/orders/settings', { body: { weight }, headers: as(token) })
    const refused = await weigh(2, 'orders')
    expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
    expect(refused.body.detail).toContain('at most 1')
    expect((await weigh(1, 'orders')).status).toBe(200)
    expect((await weigh(4, 'shared')).status).toBe(200)
    expect((await weigh(5, 'shared')).status).toBe(403)
    expect((await weigh(100, 'ops')).status).toBe(200)
    const early = await baton.post(
      '/call-back',
      [descriptor('late', 2, 0), descriptor('late', 3, 0)],
      as('late'),
    )
    expect([early.status, early.body.code]).toEqual([403, 'token_limited'])
    expect(early.body.detail).toContain('level 3 and above')
    expect((await baton.post('/call-back', [descriptor('late', 3, 0)], as('late'))).status).toBe(200)
  })

  test('has a limit of open tasks, and opens another when one has ended', async () => {
    const baton = await guarded()
    const callBack = (taskId: string, count: number, token = 'few') =>
      baton.post('/call-back', descriptors(taskId, count), as(token))
    for (const taskId of ['few-1', 'few-2']) expect((await callBack(taskId, 1)).status).toBe(200)
    const refused = await callBack('few-3', 1)
    expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([
      429,
      'open_work_limited',
      true,
    ])
    expect(refused.headers['retry-after']).toBe('10')
    expect(refused.body.detail).toContain('may have 2 open tasks and has 2; nothing was stored')
    expect(refused.body.detail).toContain('maxOpenTasks')
    expect((await baton.get('/tasks/few-3', as('ops'))).status).toBe(404)
    // Neither a repeat, nor more of an open task, nor a task of another producer.
    expect((await callBack('few-2', 1)).body.duplicates).toBe(1)
    expect((await callBack('few-2', 2)).body.accepted).toBe(1)
    expect((await callBack('stock-1', 1, 'stock')).status).toBe(200)
    await baton.post('/tasks/few-1/cancel', undefined, as('ops'))
    await expect.poll(async () => (await callBack('few-3', 1)).status, { timeout: 30_000 }).toBe(200)
    await baton.expectSound()
  })

  test('has a limit of waiting partitions, and a refused array changes nothing', async () => {
    const baton = await guarded()
    const callBack = (taskId: string, count: number) =>
      baton.post('/call-back', descriptors(taskId, count), as('small'))
    // The array is written in pieces, and counts once.
    expect((await callBack('small', 2500)).body.accepted).toBe(2500)
    for (const [taskId, count] of [
      ['small', 3001],
      ['other', 501],
    ] as const) {
      const refused = await callBack(taskId, count)
      expect([refused.status, refused.body.code]).toEqual([429, 'open_work_limited'])
      expect(refused.body.detail).toContain('may have 3000 waiting partitions in its tasks and has 2500')
    }
    expect((await baton.get('/tasks/other', as('ops'))).status).toBe(404)
    expect((await baton.get('/tasks/small', as('ops'))).body.partitions.total).toBe(2500)
    expect((await callBack('small', 3000)).body).toMatchObject({ accepted: 500, duplicates: 2500 })
    expect((await callBack('other', 1)).status).toBe(429)
    // The first pulls may get partitions of the other producer.
    await expect
      .poll(
        async () => {
          await baton.get('/pull', as('work'))
          return (await callBack('other', 1)).status
        },
        { timeout: 30_000 },
      )
      .toBe(200)
    await baton.expectSound()
  })

  test.runIf(isEmbedded())('still owns it after a restart', async () => {
    const baton = await guarded()
    const { config } = baton
    await baton.app.close()
    const again = await TestApp.open(config)
    expect((await again.get('/tasks/orders', as('orders'))).body.calledBackBy).toEqual(['orders'])
  })
})

describe('a call-back with Task-Settings', () => {
  const setting = (token: string, settings = 'max-leases=2') => ({ 'task-settings': settings, ...as(token) })

  test('is refused for a task of another producer, and for a weight above that of the token', async () => {
    const baton = await guarded()
    const most = async () => (await baton.get('/tasks/orders', as('ops'))).body.settings.maxLeases
    for (const array of [descriptors('orders', 2), descriptors('orders', 3)]) {
      const refused = await baton.post('/call-back', array, setting('stock'))
      expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
    }
    expect(await most()).toBe(null)
    expect((await baton.post('/call-back', descriptors('orders', 2), setting('next'))).status).toBe(200)
    expect(await most()).toBe(2)
    const heavy = await baton.post('/call-back', descriptors('orders', 2), setting('next', 'weight=2'))
    expect([heavy.status, heavy.body.code]).toEqual([403, 'token_limited'])
  })

  test('of a cancelled task is refused', async () => {
    const baton = await guarded()
    await baton.post('/tasks/orders/cancel', undefined, as('ops'))
    const refused = await baton.post('/call-back', descriptors('orders', 2), setting('orders'))
    expect([refused.status, refused.body.code]).toEqual([409, 'task_cancelled'])
  })
})

describe('a call-back with Baton-Seal', () => {
  const sealing = (seal: string, more: Record<string, string> = {}) => ({ 'baton-seal': seal, ...more })

  test('seals the task in the same transaction', async () => {
    const baton = await TestApp.open()
    const { status, body } = await baton.post('/call-back', descriptors('orders', 2), sealing('true'))
    expect([status, body]).toEqual([200, { taskId: 'orders', accepted: 2, duplicates: 0 }])
    const task = (await baton.get('/tasks/orders')).body
    expect(task).toMatchObject({ sealed: true, expectedPartitions: null, calledBackBy: [] })
    const late = await baton.post('/call-back', [descriptor('orders', 1, 0)])
    expect([late.status, late.body.code]).toEqual([409, 'task_sealed'])
    await baton.expectSound()
  })

  test('may state the total number of partitions', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 2))
    await baton.post('/call-back', [descriptor('orders', 1, 0)], sealing('5'))
    expect((await baton.get('/tasks/orders')).body).toMatchObject({
      sealed: true,
      expectedPartitions: 5,
      missingPartitions: 2,
    })
  })

  test('that expects fewer partitions than there would be stores nothing', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 2))
    const { status, body } = await baton.post('/call-back', [descriptor('orders', 1, 0)], sealing('2'))
    expect([status, body.code]).toEqual([422, 'parameter_invalid'])
    expect(body.detail).toBe(
      'Baton-Seal expects fewer partitions than the task would have (3); nothing was stored',
    )
    expect((await baton.get('/tasks/orders')).body).toMatchObject({ sealed: false, partitions: { total: 2 } })
  })

  test('finishes a task whose partitions are all done', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 1))
    const [partition] = await baton.pull()
    await baton.post('/settle', [{ leaseId: partition?.lease?.id, outcome: 'done' }])
    await baton.post('/call-back', descriptors('orders', 1), sealing('1'))
    expect((await baton.get('/tasks/orders')).body).toMatchObject({ state: 'done', sealed: true })
  })

  test.each(['yes', '', '-1', '1.5', 'TRUE', '9007199254740992', '1, 2'])(
    'is refused with the value %j',
    async (text) => {
      const baton = await TestApp.open()
      const { status, body } = await baton.post('/call-back', descriptors('orders', 2), sealing(text))
      expect([status, body.code]).toEqual([422, 'parameter_invalid'])
      expect(body.detail).toContain('Baton-Seal must be true or the total number of partitions')
      expect((await baton.get('/tasks/orders')).status).toBe(404)
    },
  )

  test('is refused for a task of another producer', async () => {
    const baton = await guarded()
    const { status, body } = await baton.post(
      '/call-back',
      descriptors('orders', 2),
      sealing('true', as('stock')),
    )
    expect([status, body.code]).toEqual([403, 'token_limited'])
    expect((await baton.get('/tasks/orders', as('ops'))).body.sealed).toBe(false)
    expect(
      (await baton.post('/call-back', descriptors('orders', 2), sealing('true', as('next')))).status,
    ).toBe(200)
  })

  test('also seals with an array that is written in pieces', async () => {
    const baton = await TestApp.open()
    const many = descriptors('orders', 20_000)
    expect((await baton.post('/call-back', many, sealing('20001'))).body.accepted).toBe(20_000)
    expect((await baton.get('/tasks/orders')).body).toMatchObject({ sealed: true, missingPartitions: 1 })
    // Again, with the right number: all of it is known, and the number counts.
    expect((await baton.post('/call-back', many, sealing('20000'))).body.duplicates).toBe(20_000)
    expect((await baton.get('/tasks/orders')).body).toMatchObject({ sealed: true, missingPartitions: 0 })
    await baton.expectSound()
  })
})

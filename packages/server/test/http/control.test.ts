import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

async function withTask(...indexes: number[]): Promise<TestApp> {
  const baton = await TestApp.open()
  await baton.callBack(...indexes.map((index) => descriptor('orders', 0, index)))
  return baton
}

const park = async (baton: TestApp) =>
  baton.settle(await baton.pull({ prefer: 'batch=1000' }), { outcome: 'failed', final: true })

describe('a body', () => {
  const service = TestApp.shared()
  const number = 'must be a non-negative integer'

  test.each<[string, unknown, string, string]>([
    ['retry', { levle: 1 }, '/levle', '"levle" is not a field of the contract; did you mean level?'],
    ['pause', { because: 'so' }, '/because', '"because" is not a field of the contract; remove it'],
    ['retry', { level: -1 }, '/level', `level ${number}, got the number -1`],
    ['retry', { level: '1' }, '/level', `level ${number}, got the string "1"`],
    ['retry', { done: 'yes' }, '/done', 'done must be true or false, got the string "yes"'],
    [
      'retry',
      { partitions: 'orders-0-1' },
      '/partitions',
      'partitions must be an array, got the string "orders-0-1"',
    ],
    ['retry', { partitions: [] }, '/partitions', 'partitions must not be empty; omit it or add an element'],
    [
      'retry',
      { partitions: ['orders-0-1', 5] },
      '/partitions/1',
      'each element of partitions must be a string, got the number 5',
    ],
    [
      'retry',
      { partitions: ['orders-0-1', 'returns-0-1'] },
      '/partitions/1',
      'each element of partitions must begin with the taskId and a hyphen, got "returns-0-1"',
    ],
    [
      'retry',
      { level: 0, partitions: ['orders-0-1'] },
      '',
      'send level or partitions, not both: the name of a partition contains its level',
    ],
    ['seal', { partitions: 1.5 }, '/partitions', `partitions ${number}, got the number 1.5`],
    ['seal', [3], '', 'the body must be an object with partitions, got an array'],
    ['pause', [], '', 'the body must be omitted, or an empty object, got an empty array'],
    [
      'retry',
      'x',
      '',
      'the body must be an object with level, partitions, reason or done, got the string "x"',
    ],
    ['retry', { reason: 7 }, '/reason', 'reason must be a string, got the number 7'],
    ['retry', { reason: '' }, '/reason', 'reason must not be empty, got an empty string'],
    [
      'retry',
      { reason: 'expired', level: 0 },
      '',
      'send reason or level, not both: a reason stands for all parked partitions of its group',
    ],
    ['cancel', null, '', 'the body must be omitted, or an empty object, got null'],
    ['level-barrier', { enabled: 1 }, '/enabled', 'enabled must be true or false, got the number 1'],
  ])('of %s that is %j is refused: %s', async (order, body, pointer, detail) => {
    const answer = await service().ask('POST', `/tasks/orders/${order}`, {
      raw: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    })
    expect([answer.status, answer.body.errors]).toEqual([422, [{ pointer, detail }]])
  })

  test('of retry that names too many partitions is refused', async () => {
    const answer = await service().post('/tasks/orders/retry', {
      partitions: Array(10_001).fill('orders-0-1'),
    })
    const detail = 'partitions must have at most 10000 elements, got 10001'
    expect(answer.body.errors).toEqual([{ pointer: '/partitions', detail }])
  })

  test('is answered with all its errors', async () => {
    const body = { levle: 1, done: 1, partitions: [1, 'orders-0-1', 2] }
    const answer = await service().post('/tasks/orders/retry', body)
    const pointers = answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)
    expect(pointers).toEqual(['/levle', '/done', '/partitions/0', '/partitions/2'])
  })
})

describe('level-barrier', () => {
  test('is refused in at-most-once delivery', async () => {
    const baton = await TestApp.open({ delivery: 'at-most-once' })
    await baton.callBack(descriptor('orders', 0, 1))
    const answer = await baton.post('/tasks/orders/level-barrier')
    expect([answer.status, answer.body.errors]).toMatchObject([422, [{ pointer: '/enabled' }]])
    expect((await baton.post('/tasks/orders/level-barrier', { enabled: false })).status).toBe(200)
  })
})

describe('pause and resume', () => {
  test('stop and continue a task, and may be repeated', async () => {
    const baton = await withTask(1)
    expect((await baton.post('/tasks/orders/pause')).body).toEqual({
      taskId: 'orders',
      state: 'paused',
      changed: 1,
    })
    expect((await baton.post('/tasks/orders/pause')).body).toEqual({
      taskId: 'orders',
      state: 'paused',
      changed: 0,
    })
    expect(await baton.pull()).toEqual([])
    expect((await baton.post('/tasks/orders/resume')).body).toMatchObject({ state: 'open' })
    expect(await baton.pull()).toHaveLength(1)
  })
})

describe('cancel', () => {
  test('permanently ends what is not done', async () => {
    const baton = await withTask(1, 2)
    await baton.pull()
    expect((await baton.post('/tasks/orders/cancel')).body).toEqual({
      taskId: 'orders',
      state: 'cancelled',
      changed: 2,
    })
    expect((await baton.post('/tasks/orders/cancel')).body.changed).toBe(0)
    const answer = await baton.post('/tasks/orders/resume')
    expect([answer.status, answer.body.code]).toEqual([409, 'task_cancelled'])
  })
})

describe('retry', () => {
  test('of named partitions or of a level changes only those', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2), descriptor('orders', 1, 1))
    await park(baton)
    const named = await baton.post('/tasks/orders/retry', { partitions: ['orders-0-2'] })
    expect(named.body.changed).toBe(1)
    expect((await baton.post('/tasks/orders/retry', { level: 1 })).body.changed).toBe(1)
    expect((await baton.get('/tasks/orders')).body.partitions).toMatchObject({ ready: 2, parked: 1 })
  })

  test('names the partitions that the task does not have, and changes nothing', async () => {
    const baton = await withTask(1)
    await park(baton)
    const answer = await baton.post('/tasks/orders/retry', { partitions: ['orders-0-1', 'orders-0-9'] })
    expect([answer.status, answer.body.code]).toEqual([404, 'partition_unknown'])
    expect(answer.body.errors).toMatchObject([{ pointer: '/partitions/1' }])
    expect((await baton.get('/tasks/orders')).body.partitions.parked).toBe(1)
  })

  test('of a level that the task does not have is answered 404', async () => {
    const baton = await withTask(1)
    const { status, body } = await baton.post('/tasks/orders/retry', { level: 77 })
    expect([status, body.code, body.errors]).toEqual([
      404,
      'partition_unknown',
      [{ pointer: '/level', detail: 'the task has no partition on that level' }],
    ])
  })

  test('of a reason changes what is parked for it, and says if the task has no such failures', async () => {
    const baton = await withTask(1, 2)
    const [first, second] = (await baton.pull({ prefer: 'batch=2' })).map(leaseId)
    await baton.post('/settle', [
      { leaseId: first, outcome: 'failed', final: true, reason: 'locked by 7' },
      { leaseId: second, outcome: 'failed', final: true, reason: 'no such column' },
    ])
    const { failures } = (await baton.get('/tasks/orders')).body
    const { key } = failures.find(({ reason }: { reason: string }) => reason === 'locked by #')
    expect((await baton.post('/tasks/orders/retry', { reason: key })).body.changed).toBe(1)
    const { status, body } = await baton.post('/tasks/orders/retry', { reason: `${key}x` })
    expect([status, body.code, body.errors]).toEqual([
      404,
      'partition_unknown',
      [{ pointer: '/reason', detail: 'reason must be the key of one of the failures of the task' }],
    ])
    expect((await baton.get('/tasks/orders')).body.partitions).toMatchObject({ ready: 1, parked: 1 })
  })
})

describe('seal', () => {
  test('expects no fewer partitions than were called back', async () => {
    const baton = await withTask(1, 2)
    const answer = await baton.post('/tasks/orders/seal', { partitions: 1 })
    const detail = 'the task has 2 partitions already; partitions must be at least as large'
    expect([answer.status, answer.body.errors]).toEqual([422, [{ pointer: '/partitions', detail }]])
    expect((await baton.get('/tasks/orders')).body.sealed).toBe(false)
  })

  test('shows how many are missing', async () => {
    const baton = await withTask(1)
    expect((await baton.post('/tasks/orders/seal', { partitions: 3 })).status).toBe(200)
    const { body } = await baton.get('/tasks/orders')
    expect(body).toMatchObject({ sealed: true, expectedPartitions: 3, missingPartitions: 2 })
  })

  test('shows a done task with missing partitions as incomplete in the list, too', async () => {
    const baton = await withTask(1)
    await baton.post('/tasks/orders/seal', { partitions: 3 })
    await baton.settle(await baton.pull())
    // Several nodes may agree a moment later that it is done.
    const tasks = async () => (await baton.get('/tasks?state=done')).body.tasks
    await until(async () => (await tasks()).length === 1)
    expect(await tasks()).toMatchObject([{ taskId: 'orders', expectedPartitions: 3, missingPartitions: 2 }])
  })
})

describe('the level barrier', () => {
  test('holds a level until the lower one is done, or its parked partitions are skipped', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 1, 1))
    expect((await baton.post('/tasks/orders/level-barrier')).status).toBe(200)
    await park(baton)
    expect(await baton.pull()).toEqual([])
    expect((await baton.get('/tasks/orders')).body.waitingFor).toEqual({ level: 0, parked: 1, unfinished: 1 })
    expect((await baton.post('/tasks/orders/skip-parked')).status).toBe(200)
    expect(await baton.pull()).toMatchObject([{ partition_name: 'orders-1-1' }])
  })

  test('can be removed', async () => {
    const baton = await TestApp.open({ levelBarrier: true })
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 1, 1))
    expect(await baton.pull({ prefer: 'batch=9' })).toHaveLength(1)
    await baton.post('/tasks/orders/level-barrier', { enabled: false })
    expect(await baton.pull({ prefer: 'batch=9' })).toHaveLength(1)
  })
})

describe('every control request', () => {
  const service = TestApp.shared()
  const verbs = ['pause', 'resume', 'cancel', 'retry', 'seal', 'skip-parked', 'level-barrier']

  test.each(verbs)('%s of an unknown task is answered 404', async (verb) => {
    const answer = await service().post(`/tasks/nothing/${verb}`)
    expect([answer.status, answer.body.code]).toEqual([404, 'task_unknown'])
  })

  test.each(verbs)('%s refuses fields that it does not know', async (verb) => {
    const answer = await service().post(`/tasks/nothing/${verb}`, { levl: 1 })
    expect([answer.status, answer.body.code]).toEqual([422, 'contract_violation'])
  })

  test.each([
    {},
    { 'content-type': 'application/json' },
    { 'content-type': 'application/x-www-form-urlencoded' },
  ])('needs no body, whatever its headers declare: %j', async (headers) => {
    const declared = { ...headers, 'content-length': '0' } as Record<string, string>
    const answer = await service().ask('POST', '/tasks/nothing/pause', { headers: declared, raw: '' })
    expect(answer.body.code).toBe('task_unknown')
  })

  test('of a finished task is refused, as there is nothing to change', async () => {
    const baton = await withTask(1)
    await baton.settle(await baton.pull())
    const answer = await baton.post('/tasks/orders/pause')
    expect([answer.status, answer.body.code]).toEqual([409, 'task_finished'])
  })
})

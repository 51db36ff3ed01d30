import { describe, expect, test } from 'vitest'
import { descriptor, TestApp } from '../support/test-app.ts'

describe('POST /call-back', () => {
  test('stores an array and returns how many were new', async () => {
    const baton = await TestApp.open()
    const array = [descriptor('orders', 0, 1), descriptor('orders', 0, 2), descriptor('orders', 1, 1)]
    const answer = await baton.post('/call-back', array, { accept: '*/*', 'cache-control': 'no-cache' })
    expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store'])
    expect(answer.body).toEqual({ taskId: 'orders', accepted: 3, duplicates: 0 })
    const more = await baton.post('/call-back', [descriptor('orders', 0, 1), descriptor('orders', 0, 3)])
    expect(more.body).toEqual({ taskId: 'orders', accepted: 1, duplicates: 1 })
  })

  test('is refused for too many levels with unfinished partitions', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 0))
    const levels = Array.from({ length: 10_000 }, (_, at) => descriptor('orders', at + 1, 0))
    const { status, body } = await baton.post('/call-back', levels)
    expect([status, body.code, body.detail]).toEqual([
      422,
      'too_many_levels',
      'with this array, the task would have more than 10000 levels with unfinished partitions',
    ])
  })

  test('lists everything that breaks the contract, and stores nothing', async () => {
    const baton = await TestApp.open()
    const array = [descriptor('orders', 0, 1), { ...descriptor('orders', 0, 2), record_count: '5' }]
    const answer = await baton.post('/call-back', array)
    expect(answer.status).toBe(422)
    expect(answer.body.code).toBe('contract_violation')
    expect(answer.body.errors).toEqual([
      { pointer: '/1/record_count', detail: expect.stringContaining('non-negative integer') },
    ])
    expect((await baton.get('/tasks/orders')).status).toBe(404)
  })

  test('lists a hundred violations and counts the rest', async () => {
    const baton = await TestApp.open()
    const answer = await baton.post('/call-back', Array(150).fill(7))
    expect(answer.body.errors).toHaveLength(100)
    expect(answer.body.errorsOmitted).toBe(50)
  })

  test('names each partition that is known with other content, and stores nothing of the array', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const answer = await baton.post('/call-back', [
      descriptor('orders', 0, 1, { record_count: 7 }),
      descriptor('orders', 0, 2, { computeTableName: 'results.others', partition_name: 'orders-0-02' }),
      descriptor('orders', 0, 3),
    ])
    expect(answer.status).toBe(409)
    expect(answer.body.code).toBe('partition_conflict')
    expect(answer.body.conflicts).toEqual([
      {
        pointer: '/0',
        partition_name: 'orders-0-1',
        detail: 'record_count is 7 in the request and 100 in the stored descriptor',
      },
      {
        pointer: '/1',
        partition_name: 'orders-0-02',
        detail:
          'partition_name is orders-0-02 in the request and orders-0-2 in the stored descriptor; ' +
          'computeTableName is results.others in the request and results.orders in the stored descriptor',
      },
    ])
    expect((await baton.get('/tasks/orders')).body.partitions.total).toBe(2)
  })

  test('names a hundred conflicts and counts the rest', async () => {
    const baton = await TestApp.open()
    const indexes = Array.from({ length: 130 }, (_, index) => index)
    await baton.callBack(...indexes.map((index) => descriptor('orders', 0, index)))
    const changed = indexes.map((index) => descriptor('orders', 0, index, { record_count: 1 }))
    const answer = await baton.post('/call-back', changed)
    expect(answer.body.conflicts).toHaveLength(100)
    expect(answer.body.conflictsOmitted).toBe(30)
  })

  test('accepts nothing new for a cancelled task, but still recognizes duplicates', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    await baton.post('/tasks/orders/cancel')
    expect((await baton.post('/call-back', [descriptor('orders', 0, 2)])).body.code).toBe('task_cancelled')
    expect((await baton.post('/call-back', [descriptor('orders', 0, 1)])).body.duplicates).toBe(1)
  })

  test('refuses records beyond what a task can count', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1, { record_count: Number.MAX_SAFE_INTEGER }))
    const answer = await baton.post('/call-back', [descriptor('orders', 0, 2, { record_count: 1 })])
    expect([answer.status, answer.body.code]).toEqual([409, 'record_total_too_large'])
  })
})

describe('the table field', () => {
  const renamed = ({ computeTableName, ...others }: ReturnType<typeof descriptor>) => ({
    ...others,
    sparkTableName: computeTableName,
  })

  test('has its configured name in both directions', async () => {
    const baton = await TestApp.open({ tableField: 'sparkTableName' })
    expect((await baton.post('/call-back', [renamed(descriptor('orders', 0, 1))])).status).toBe(200)
    const [partition] = await baton.pull()
    expect(partition).toMatchObject({ taskId: 'orders', sparkTableName: 'results.orders' })
    expect(partition).not.toHaveProperty('computeTableName')
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions[0]).toMatchObject({ sparkTableName: 'results.orders' })
  })

  test('under its default name is refused with the configured one', async () => {
    const baton = await TestApp.open({ tableField: 'sparkTableName' })
    const answer = await baton.post('/call-back', [descriptor('orders', 0, 1)])
    expect(answer.body.errors[0].detail).toContain('did you mean sparkTableName?')
  })
})

describe('fields that are not in the contract', () => {
  const withExtra = { ...descriptor('orders', 0, 1), recordcount: 5 }

  test('are refused by name', async () => {
    const baton = await TestApp.open()
    const answer = await baton.post('/call-back', [withExtra])
    expect(answer.body.errors).toEqual([
      {
        pointer: '/0/recordcount',
        detail: `"recordcount" is not a field of the contract; remove it, or start the service with --unknown-fields keep to hand it to the worker`,
      },
    ])
  })

  test('are ignored if so configured', async () => {
    const baton = await TestApp.open({ unknownFields: 'ignore' })
    expect((await baton.post('/call-back', [withExtra])).status).toBe(200)
  })
})

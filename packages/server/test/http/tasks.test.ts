import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

const service = TestApp.shared()

type Named = { taskId: string; partition_name: string }

/** Follows `next` until there is none. */
async function allPages(baton: TestApp, path: string, list: 'tasks' | 'partitions'): Promise<Named[][]> {
  const pages: Named[][] = []
  let cursor = ''
  do {
    const { body } = await baton.get(`${path}${cursor}`)
    pages.push(body[list])
    cursor = body.next === null ? '' : `&cursor=${body.next}`
  } while (cursor !== '')
  return pages
}

describe('GET /tasks', () => {
  test('lists tasks newest first, page by page', async () => {
    const baton = await TestApp.open()
    for (const taskId of ['t1', 't2', 't3', 't4', 't5']) await baton.callBack(descriptor(taskId, 0, 1))
    const pages = await allPages(baton, '/tasks?limit=2', 'tasks')
    expect(pages.map((page) => page.map(({ taskId }) => taskId))).toEqual([
      ['t5', 't4'],
      ['t3', 't2'],
      ['t1'],
    ])
  })

  test('filters by state and by a part of the id', async () => {
    const baton = await TestApp.open()
    for (const taskId of ['red-1', 'red-2', 'blue-1']) await baton.callBack(descriptor(taskId, 0, 1))
    await baton.post('/tasks/red-1/pause')
    const ids = async (query: string) =>
      (await baton.get(`/tasks?${query}`)).body.tasks.map(({ taskId }: Named) => taskId)
    expect(await ids('state=paused')).toEqual(['red-1'])
    expect(await ids('state=open')).toEqual(['blue-1', 'red-2'])
    expect(await ids('search=red')).toEqual(['red-2', 'red-1'])
  })

  test('lists only tasks with parked partitions if requested, whatever their state', async () => {
    const baton = await TestApp.open()
    for (const taskId of ['red-1', 'red-2', 'red-3', 'blue-1']) await baton.callBack(descriptor(taskId, 0, 1))
    for (const partition of await baton.pull({ prefer: 'batch=9' })) {
      const [outcome, final] = partition.taskId === 'red-3' ? ['done', false] : ['failed', true]
      await baton.post('/settle', [{ leaseId: leaseId(partition), outcome, final }])
    }
    await baton.post('/tasks/red-1/pause')
    const pages = async (query: string) =>
      (await allPages(baton, `/tasks?${query}`, 'tasks')).map((page) => page.map(({ taskId }) => taskId))
    expect(await pages('parked=true')).toEqual([['blue-1', 'red-2', 'red-1']])
    expect(await pages('parked=true&limit=2')).toEqual([['blue-1', 'red-2'], ['red-1']])
    expect(await pages('parked=true&state=stalled')).toEqual([['blue-1', 'red-2']])
    expect(await pages('parked=true&search=red')).toEqual([['red-2', 'red-1']])
    expect(await pages('parked=true&search=red&state=paused')).toEqual([['red-1']])
  })

  test.each(['parked=false', 'parked=', 'parked=1', 'parked=TRUE'])(
    '%s is refused with the allowed values',
    async (query) => {
      const { status, body } = await service().get(`/tasks?${query}`)
      expect([status, body.code, body.detail]).toEqual([
        422,
        'parameter_invalid',
        'the query parameter parked must be true, or be omitted',
      ])
    },
  )

  test.each([
    'stat=open',
    'parkd=true',
    'parked=true&parked=true',
    'state=lost',
    'state=',
    'limit=0',
    'cursor=x',
    'cursor=IngiCg',
    'state=open&state=done',
  ])('with %s is answered 422', async (query) => {
    const answer = await service().get(`/tasks?${query}`)
    expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
  })
})

describe('GET /tasks/{taskId}', () => {
  test('shows the progress of a task, in partitions and in records', async () => {
    const baton = await TestApp.open()
    await baton.callBack(
      descriptor('orders', 0, 1, { record_count: 10 }),
      descriptor('orders', 0, 2, { record_count: 20 }),
      descriptor('orders', 3, 5, { record_count: 30, computeTableName: 'results.late' }),
    )
    await baton.settle(await baton.pull())
    await baton.pull()
    const { body } = await baton.get('/tasks/orders')
    expect(body).toMatchObject({
      taskId: 'orders',
      state: 'open',
      sealed: false,
      partitions: { total: 3, ready: 1, leased: 1, done: 1 },
      records: { total: 60, ready: 30, leased: 20, done: 10 },
      computeTables: ['results.orders', 'results.late'],
      levels: [
        { level: 0, open: true, partitions: { total: 2 } },
        { level: 3, open: true, indexes: { first: 5, last: 5, missing: 0, gaps: [] } },
      ],
    })
  })

  test.each(['', '/partitions', '/manifest'])('%s of an unknown task is answered 404', async (path) => {
    const answer = await service().get(`/tasks/nothing${path}`)
    expect([answer.status, answer.body.code]).toEqual([404, 'task_unknown'])
  })
})

describe('GET /tasks/{taskId}/partitions', () => {
  const five = [
    descriptor('orders', 0, 1),
    descriptor('orders', 0, 2),
    descriptor('orders', 0, 10),
    descriptor('orders', 1, 1),
    descriptor('orders', 1, 2),
  ]
  const names = (partitions: Named[]) => partitions.map(({ partition_name }) => partition_name)

  test('lists them by level and index, page by page', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...five)
    const pages = await allPages(baton, '/tasks/orders/partitions?limit=2', 'partitions')
    expect(names(pages.flat())).toEqual([
      'orders-0-1',
      'orders-0-2',
      'orders-0-10',
      'orders-1-1',
      'orders-1-2',
    ])
  })

  test('filters by state and level', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...five)
    await baton.pull({ 'x-instance-id': 'loader-7' })
    const list = async (query: string) =>
      names((await baton.get(`/tasks/orders/partitions?${query}`)).body.partitions)
    expect(await list('state=leased')).toEqual(['orders-0-1'])
    expect(await list('level=1')).toEqual(['orders-1-1', 'orders-1-2'])
    expect(await list('state=ready&level=0')).toEqual(['orders-0-2', 'orders-0-10'])
    expect(await list('state=parked')).toEqual([])
  })

  test('filters by name, by the beginning of names and by holder', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...five)
    await baton.pull({ 'x-instance-id': 'loader 7' })
    await baton.pull({ 'x-instance-id': 'loader-8' })
    const list = async (query: string) =>
      names((await baton.get(`/tasks/orders/partitions?${query}`)).body.partitions)
    expect(await list('name=orders-0-10')).toEqual(['orders-0-10'])
    expect(await list('name=orders-0-11')).toEqual([])
    expect(await list('name=orders-0-1*')).toEqual(['orders-0-1', 'orders-0-10'])
    expect(await list('holder=loader%207')).toEqual(['orders-0-1'])
    expect(await list('holder=loader-8&name=orders-0-2&state=leased')).toEqual(['orders-0-2'])
    expect(await list('holder=loader-8&state=ready')).toEqual([])
    expect(await list('holder=nobody')).toEqual([])
  })

  test('lists finished ones last on request, page by page', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...five)
    await baton.settle(await baton.pull())
    await baton.pull()
    const pages = await allPages(baton, '/tasks/orders/partitions?order=unfinished&limit=2', 'partitions')
    expect(pages.map(names)).toEqual([
      ['orders-0-2', 'orders-0-10'],
      ['orders-1-1', 'orders-1-2'],
      ['orders-0-1'],
    ])
  })

  test.each([
    'levels=1',
    'level=-1',
    'level=1.5',
    'level=x',
    'state=lost',
    'cursor=W10',
    'cursor=WyJhIiwxXQ',
    'cursor=WzAsMF0',
    'cursor=WzAsMCwic29tZSJd',
    'name=',
    'name=orders',
    'name=orders-0',
    'name=other-0-1',
    'name=orders-0-1&name=orders-0-2',
    'holder=',
    'holder=%00',
    'holder=a&holder=b',
    'reason=',
    'reason=a&reason=b',
    'order=level',
    'order=',
  ])('with %s is answered 422', async (query) => {
    await service().callBack(...five)
    expect((await service().get(`/tasks/orders/partitions?${query}`)).status).toBe(422)
  })
})

describe('GET /tasks/{taskId}/manifest', () => {
  test('exports a line for every partition, by level and index', async () => {
    const baton = await TestApp.open()
    const indexes = Array.from({ length: 2500 }, (_, index) => index)
    await baton.callBack(
      ...indexes.map((index) => descriptor('orders', 0, index)),
      descriptor('orders', 1, 0),
    )
    await baton.post('/settle', [{ leaseId: leaseId((await baton.pull())[0]), outcome: 'done', records: 99 }])
    const { status, headers, text } = await baton.get('/tasks/orders/manifest')
    expect([status, headers['content-type']]).toEqual([200, 'application/x-ndjson'])
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toHaveLength(2501)
    expect(lines[0]).toEqual({
      ...descriptor('orders', 0, 0),
      state: 'done',
      attempts: expect.any(Number),
      reportedRecords: 99,
      calledBackAt: expect.any(String),
      settledAt: expect.any(String),
      lastReason: null,
      history: [
        {
          attempt: 1,
          holder: null,
          startedAt: expect.any(String),
          endedAt: expect.any(String),
          outcome: 'done',
          reason: null,
          records: 99,
        },
      ],
    })
    expect(lines.at(-1).partition_name).toBe('orders-1-0')
  })

  test('exports one state or level, with the attempts and their reasons', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 0), descriptor('orders', 1, 0))
    await baton.settle(await baton.pull(), { outcome: 'failed', final: true, reason: 'locked' })
    const { text } = await baton.get('/tasks/orders/manifest?state=parked')
    const line = JSON.parse(text)
    expect(line).toMatchObject({ state: 'parked', lastReason: 'locked' })
    expect(line.history).toMatchObject([{ attempt: 1, outcome: 'failed', reason: 'locked' }])
    expect((await baton.get('/tasks/orders/manifest?state=parked&level=1')).text).toBe('')
    expect((await baton.get('/tasks/orders/manifest?state=stuck')).status).toBe(422)
    const { body: task } = await baton.get('/tasks/orders')
    expect(task.failures).toMatchObject([{ outcome: 'failed', reason: 'locked', count: 1 }])
  })

  test('of a purged task is refused rather than empty', async () => {
    const baton = await TestApp.open({ retentionDays: 0 })
    await baton.callBack(descriptor('orders', 0, 1))
    await baton.settle(await baton.pull())
    // Retention runs right after a control request, and every ten seconds otherwise.
    await baton.post('/tasks/orders/seal')
    await until(async () => (await baton.get('/tasks/orders')).body.purgedAt !== null)
    const answer = await baton.get('/tasks/orders/manifest')
    expect([answer.status, answer.body.code]).toEqual([409, 'task_purged'])
  })
})

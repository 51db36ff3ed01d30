import { describe, expect, test } from 'vitest'
import { Scrape } from '../support/scrape.ts'
import { descriptor, descriptors, leaseId, TestApp } from '../support/test-app.ts'

/** A service whose clock is advanced by the test. */
async function service(changed: Parameters<typeof TestApp.open>[0] = {}) {
  let now = Date.parse('2026-03-01T12:00:00Z')
  const baton = await TestApp.open(changed, { clock: () => now })
  const pass = (seconds: number) => {
    now += seconds * 1000
  }
  const pullAs = (worker: string, query = '', batch = 1) =>
    baton.get(`/pull${query}`, { 'x-instance-id': worker, prefer: `batch=${batch}` })
  /** Each worker processes this many rounds of partitions, one after the other, of this many seconds each. */
  const work = async (workers: readonly string[], rounds: number, seconds: number, query = '', batch = 1) => {
    for (let round = 0; round < rounds; round += 1) {
      const pulled = await Promise.all(workers.map((worker) => pullAs(worker, query, batch)))
      pass(seconds)
      await baton.settle(pulled.flatMap(({ body }) => body.partitions))
    }
  }
  const scale = async (query = '') => {
    const { status, body } = await baton.get(`/scale${query}`)
    expect(status).toBe(200)
    return body
  }
  return { baton, pass, pullAs, work, scale }
}

describe('the backlog', () => {
  test('of an empty store is zero, and needs no workers', async () => {
    const { scale } = await service()
    const nothing = { left: 0, ready: 0, held: 0, leased: 0, delayed: 0, parked: 0 }
    expect(await scale()).toEqual({
      targetSeconds: 600,
      desiredWorkers: 0,
      estimatedWorkers: 0,
      reason: 'no-backlog',
      limitedBy: null,
      workSeconds: 0,
      backlog: { partitions: nothing, records: nothing },
      workers: { busy: 0, elsewhere: 0, idle: 0, lost: 0, leasesPerWorker: 1 },
      pace: { partitionsPerSecond: null, recordsPerSecond: null },
      tasks: { open: 0, stalled: 0, paused: 0, withOtherTables: 0 },
      complete: true,
    })
  })

  test('is reported by state, in partitions and records', async () => {
    const { baton, pullAs, scale } = await service({ maxAttempts: 2, backoffSeconds: 600 })
    await baton.callBack(...descriptors('parked', 1, { record_count: 3 }))
    await baton.settle((await pullAs('w')).body.partitions, { outcome: 'failed', final: true })
    await baton.callBack(...descriptors('open', 4, { record_count: 10 }))
    const [failed] = (await pullAs('w', '', 2)).body.partitions
    await baton.post('/settle', [{ leaseId: leaseId(failed), outcome: 'failed' }])
    await baton.callBack(...descriptors('paused', 2, { record_count: 7 }))
    await baton.post('/tasks/paused/pause')
    const { backlog, tasks } = await scale('?task=open&task=paused&task=parked')
    expect(backlog).toEqual({
      partitions: { left: 6, ready: 2, held: 2, leased: 1, delayed: 1, parked: 1 },
      records: { left: 54, ready: 20, held: 14, leased: 10, delayed: 10, parked: 3 },
    })
    expect(tasks).toEqual({ open: 1, stalled: 1, paused: 1, withOtherTables: 0 })
    expect((await scale()).backlog).toEqual(backlog)
  })
})

describe('without a measured throughput,', () => {
  test('one worker is requested while there is work, and busy ones are kept', async () => {
    const { baton, pullAs, scale } = await service()
    await baton.callBack(...descriptors('orders', 30))
    const first = await scale('?task=orders')
    expect(first).toMatchObject({ desiredWorkers: 1, estimatedWorkers: null, reason: 'no-pace' })
    expect(first).toMatchObject({ workSeconds: null, limitedBy: null })
    for (const worker of ['a', 'b', 'c']) await pullAs(worker)
    expect(await scale('?task=orders')).toMatchObject({ desiredWorkers: 3, reason: 'no-pace' })
  })

  test('a new task is assumed to take as long as the others', async () => {
    const { baton, work, scale } = await service()
    await baton.callBack(...descriptors('known', 20))
    await work(['a', 'b'], 5, 10)
    await baton.callBack(...descriptors('new', 10))
    const alone = await scale('?task=known')
    const both = await scale('?task=known&task=new')
    expect(both).toMatchObject({ reason: 'pace' })
    expect(both.workSeconds).toBeCloseTo(2 * alone.workSeconds, 0)
    expect((await scale('?task=new')).reason).toBe('no-pace')
  })
})

describe('with a measured throughput,', () => {
  /** Ten attempts of ten seconds each, by two workers; thirty are left. */
  async function measured() {
    const all = await service()
    await all.baton.callBack(...descriptors('orders', 40))
    await all.work(['a', 'b'], 5, 10)
    return all
  }

  test.each([
    [3600, 1, null],
    [300, 1, null],
    [100, 4, null],
    [60, 6, null],
    [1, 30, 'partitions'],
  ])('the target of %i s needs %i workers', async (target, workers, limitedBy) => {
    const { scale } = await measured()
    const answer = await scale(`?target=${target}`)
    expect(answer).toMatchObject({ targetSeconds: target, reason: 'pace', limitedBy })
    expect([answer.estimatedWorkers, answer.desiredWorkers]).toEqual([workers, workers])
    expect(answer.workSeconds).toBeGreaterThan(250)
    expect(answer.workSeconds).toBeLessThan(350)
    expect(answer.pace).toEqual({ partitionsPerSecond: 0.2, recordsPerSecond: 20 })
  })

  test('the lease limit of a task is respected', async () => {
    const { baton, scale } = await measured()
    await baton.ask('PATCH', '/tasks/orders/settings', { body: { maxLeases: 3 } })
    expect(await scale('?target=60')).toMatchObject({ desiredWorkers: 3, limitedBy: 'max-leases' })
    expect(await scale('?target=600')).toMatchObject({ desiredWorkers: 1, limitedBy: null })
  })

  test('no more workers are requested than the open level has partitions', async () => {
    const { baton, scale } = await measured()
    const next = Array.from({ length: 50 }, (_, index) => descriptor('orders', 1, index))
    await baton.callBack(...next)
    await baton.post('/tasks/orders/level-barrier', { enabled: true })
    const answer = await scale('?target=10')
    expect(answer).toMatchObject({ desiredWorkers: 30, limitedBy: 'partitions' })
    expect(answer.backlog.partitions).toMatchObject({ left: 80, ready: 30, held: 50 })
  })

  test('a worker that holds several leases counts as one', async () => {
    const { baton, work, pullAs, scale } = await service()
    await baton.callBack(...descriptors('orders', 140))
    await work(['a', 'b'], 5, 10, '', 4)
    await pullAs('a', '', 4)
    await pullAs('b', '', 4)
    const answer = await scale('?target=100')
    expect(answer.workers).toMatchObject({ busy: 2, leasesPerWorker: 4 })
    // A thousand seconds under lease, four leases at a time.
    expect(answer.desiredWorkers).toBe(3)
  })

  test('a paused task needs no workers except those that hold its leases', async () => {
    const { baton, pullAs, scale } = await measured()
    await pullAs('a')
    await baton.post('/tasks/orders/pause')
    expect(await scale('?target=60')).toMatchObject({ desiredWorkers: 1, reason: 'no-backlog' })
    await baton.post('/instances/a/release')
    expect(await scale('?task=orders&target=60')).toMatchObject({ desiredWorkers: 0, reason: 'no-backlog' })
  })

  test('in at-most-once delivery, all workers are measured together', async () => {
    const { baton, pass, pullAs, scale } = await service({ delivery: 'at-most-once' })
    await baton.callBack(...descriptors('orders', 40))
    for (let round = 0; round < 5; round += 1) {
      for (const worker of ['a', 'b']) await pullAs(worker)
      pass(10)
    }
    const answer = await scale('?target=80')
    expect(answer.workers).toMatchObject({ busy: 0, idle: 2 })
    // Two of them need 150 s.
    expect(answer).toMatchObject({ reason: 'pace', desiredWorkers: 4 })
  })
})

describe('workers', () => {
  test('are counted as busy, idle or elsewhere; a silent one still holds its lease, and one without a name counts as a worker', async () => {
    const { baton, pass, pullAs, scale } = await service({ leaseSeconds: 300 })
    await baton.callBack(...descriptors('orders', 5))
    await baton.callBack(...descriptors('stock', 2))
    await pullAs('silent', '?task=orders')
    pass(290)
    await pullAs('a', '?task=orders', 2)
    await baton.get('/pull?task=orders')
    await pullAs('b', '?task=stock')
    await pullAs('c', '?task=nothing-here')
    const workers = async (query: string) => (await scale(query)).workers
    expect(await workers('')).toMatchObject({ busy: 4, elsewhere: 0, idle: 1, lost: 0 })
    expect(await workers('?task=orders')).toEqual({
      busy: 3,
      elsewhere: 1,
      idle: 1,
      lost: 0,
      leasesPerWorker: 1.333,
    })
    expect(await workers('?task=stock')).toMatchObject({ busy: 1, elsewhere: 2, idle: 1, lost: 0 })
    pass(100)
    expect((await workers('?task=stock')).idle).toBe(0)
  })
})

describe('the filters', () => {
  test('match tasks by their whole id, and tables by their whole name', async () => {
    const { baton, scale } = await service()
    const of = (table: string) => ({ computeTableName: table })
    await baton.callBack(...descriptors('orders', 3, of('results.orders')))
    await baton.callBack(...descriptors('orders-2', 2, of('results.orders')))
    await baton.callBack(
      descriptor('mixed', 0, 0, of('results.orders')),
      descriptor('mixed', 0, 1, of('results.stock')),
    )
    await baton.callBack(...descriptors('stock', 4, of('results.stock')))
    await baton.callBack(...descriptors('done', 1, of('results.orders')))
    await baton.post('/tasks/done/cancel')
    const counted = async (query: string) => {
      const { backlog, tasks } = await scale(query)
      return [backlog.partitions.left, tasks.open, tasks.withOtherTables]
    }
    expect(await counted('?task=orders')).toEqual([3, 1, 0])
    expect(await counted('?task=orders&task=stock&task=unknown')).toEqual([7, 2, 0])
    expect(await counted('?table=results.orders')).toEqual([7, 3, 1])
    expect(await counted('?table=results.orders&table=results.stock')).toEqual([11, 4, 0])
    expect(await counted('?table=results.stock&task=mixed&task=orders')).toEqual([2, 1, 1])
    expect(await counted('?table=results.ORDERS')).toEqual([0, 0, 0])
    expect(await counted('?task=done')).toEqual([0, 0, 0])
  })

  test.each([
    ['?taskId=orders', '"taskId" is not a query parameter of this route; did you mean task?'],
    [
      '?workers=4',
      '"workers" is not a query parameter of this route; its parameters are table, task, and target',
    ],
    ['?target=0', 'the query parameter target must be an integer from 1 to 604800'],
    ['?target=1.5', 'the query parameter target must be an integer from 1 to 604800'],
    ['?target=9&target=9', 'the query parameter target must not be repeated'],
    [
      '?table=orders',
      'table must have the form <schema>.<table>: two non-blank parts separated by exactly one dot, without control characters, got the string "orders"',
    ],
    [
      `?${Array.from({ length: 51 }, (_, at) => `task=t${at}`).join('&')}`,
      'a request can name at most 50 tasks, got 51',
    ],
  ])('refuse %s', async (query, detail) => {
    const { baton } = await service()
    const { status, body } = await baton.get(`/scale${query}`)
    expect([status, body.code, body.detail]).toEqual([422, 'parameter_invalid', detail])
  })

  test('get an error while the store is unavailable', async () => {
    const { baton } = await service()
    await baton.app.store.close()
    for (const path of ['/scale', '/scale?task=orders', '/scale?table=results.orders']) {
      const { status, body } = await baton.get(path)
      expect([status, body.code, body.retryable]).toEqual([503, 'store_unavailable', true])
    }
  })
})

test('the metrics match the answer for the configured target', async () => {
  const { baton, work, pullAs, scale } = await service({ scaleTargetSeconds: 60 })
  await baton.callBack(...descriptors('orders', 40))
  await work(['a', 'b'], 5, 10)
  await pullAs('a')
  const scrape = await Scrape.of(baton)
  const answer = await scale()
  expect(answer.targetSeconds).toBe(60)
  expect(answer.desiredWorkers).toBeGreaterThan(4)
  expect(scrape.value('baton_desired_workers')).toBe(answer.desiredWorkers)
  expect(scrape.value('baton_backlog_work_seconds')).toBe(answer.workSeconds)
  expect(scrape.by('baton_workers')).toEqual({ busy: 1, idle: 1, lost: 0 })
  expect(scrape.value('baton_leader')).toBe(1)
})

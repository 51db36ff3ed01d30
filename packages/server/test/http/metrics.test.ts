import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { storeClosed } from '../../src/handoff/store.ts'
import { metrics } from '../../src/http/observability/metrics.ts'
import { batchedPull } from '../store/conformance/driver.ts'
import { listening, postBytes, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { Scrape } from '../support/scrape.ts'
import { descriptor, descriptors, leaseId, TestApp } from '../support/test-app.ts'

const settleBytes = (body: string) => postBytes('/settle', body, { Host: 'a.localhost' })

describe('the text of the metrics', () => {
  test('has every metric, each with its help and type, and no series twice', async () => {
    const baton = await TestApp.open()
    await baton.get('/livez')
    const answer = await baton.get('/metrics')
    expect(answer.headers).toMatchObject({
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      'cache-control': 'no-store',
    })
    const { families } = new Scrape(answer.text)
    const heads = [...families].map(([name, { type, help }]) => [name, type, help])
    expect(heads).toEqual(metrics.map(({ name, type, meaning }) => [name, type, meaning]))
  })

  test('follows the Prometheus conventions for names and units', () => {
    for (const { name, type, labels } of metrics) {
      expect(name).toMatch(/^baton_[a-z_]+$/)
      expect([name, type === 'counter']).toEqual([name, name.endsWith('_total')])
      expect(name).not.toMatch(/millis|_ms|_kb|_count$|_sum$|_bucket$/)
      expect(labels).not.toContain('le')
    }
    expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
  })

  test('has histograms with cumulative buckets', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 3))
    await baton.pull()
    const scrape = await Scrape.of(baton)
    for (const [name, { type, series }] of scrape.families) {
      if (type !== 'histogram') continue
      const groups = Map.groupBy(
        [...series].filter(([key]) => key.startsWith(`${name}_bucket`)),
        ([key]) => key.replace(/,?le="[^"]+"/, ''),
      )
      expect(groups.size).toBeGreaterThan(0)
      for (const [group, buckets] of groups) {
        const bounds = buckets.map(([key]) =>
          Number(/le="([^"]+)"/.exec(key)?.[1]?.replace('+Inf', 'Infinity')),
        )
        const counts = buckets.map(([, count]) => count)
        expect(bounds).toEqual(bounds.toSorted((a, b) => a - b))
        expect(bounds.at(-1)).toBe(Number.POSITIVE_INFINITY)
        expect(counts).toEqual(counts.toSorted((a, b) => a - b))
        const count = group.replace('_bucket', '_count').replace('{}', '')
        expect([count, scrape.value(count)]).toEqual([count, counts.at(-1)])
      }
    }
  })

  test('names no task, no instance and no lease', async () => {
    const baton = await TestApp.open()
    await baton.post('/call-back', descriptors('secret-task', 1), { 'x-instance-id': 'secret-producer' })
    const [partition] = await baton.pull({ 'x-instance-id': 'secret-worker' })
    await baton.get('/tasks/secret-task')
    await baton.get('/secret-path')
    const { text } = await Scrape.of(baton)
    expect(text).toContain('route="/tasks/{taskId}"')
    expect(text).not.toContain('secret')
    expect(text).not.toContain(leaseId(partition))
  })
})

describe('the hand-off', () => {
  test('is counted exactly', async () => {
    const baton = await TestApp.open({ backoffSeconds: 600 })
    await baton.callBack(...descriptors('orders', 6, { record_count: 50 }))
    await baton.callBack(...descriptors('orders', 7, { record_count: 50 }))
    const leases = (await baton.pull({ prefer: 'batch=5' })).map(leaseId)
    await baton.pull({ 'idempotency-key': 'k' })
    await baton.pull({ 'idempotency-key': 'k' })
    const [done, failed, released, renewed] = leases
    await baton.post('/settle', [
      { leaseId: done, outcome: 'done' },
      { leaseId: failed, outcome: 'failed' },
      { leaseId: released, outcome: 'released' },
    ])
    await baton.post('/settle', [
      { leaseId: done, outcome: 'failed' },
      { leaseId: 'nonsense', outcome: 'done' },
    ])
    await baton.post('/renew', [renewed, '9-9-aaaaaaaaaaaaaaaa'])
    // The released partition, and the last one: a settle that also pulls.
    const last = { leaseId: leases[4], outcome: 'done' }
    const { body } = await baton.post('/settle', [last], { prefer: 'batch=9' })
    expect(body.partitions).toHaveLength(2)
    await baton.pull()

    const scrape = await Scrape.of(baton)
    expect(scrape.by('baton_called_back_partitions_total')).toEqual({ accepted: 7, duplicate: 6 })
    expect(scrape.by('baton_pulls_total')).toEqual({ partitions: 3, nothing: 1, repeated: 1 })
    expect(scrape.value('baton_handed_out_partitions_total')).toBe(8)
    expect(scrape.value('baton_handed_out_records_total')).toBe(400)
    expect(scrape.by('baton_settlements_total')).toEqual({ done: 2, failed: 1, released: 1 })
    expect(scrape.value('baton_renewed_leases_total')).toBe(1)
    const refused = Object.entries(scrape.by('baton_refused_leases_total')).filter(([, count]) => count > 0)
    expect(Object.fromEntries(refused)).toEqual({
      'settle lease_settled': 1,
      'settle lease_unknown': 1,
      'renew lease_unknown': 1,
    })
    expect(scrape.by('baton_expired_leases_total')).toEqual({ no: 0, yes: 0 })
    // Two call-backs, five pulls of which one came with a settle, three settles, a renewal.
    expect(scrape.value('baton_commit_orders_sum')).toBe(11)
    expect(scrape.value('baton_commit_orders_count')).toBe(10)
    expect(scrape.value('baton_store_duration_seconds_count{verb="hand-off"}')).toBe(10)
    expect(scrape.by('baton_partitions')).toEqual({ ready: 0, held: 0, leased: 4, delayed: 1, parked: 0 })
  })

  test('has counts of expired leases, and of those that parked their partition', async () => {
    const baton = await TestApp.open({ leaseSeconds: 0.02, maxAttempts: 2, backoffSeconds: 0 })
    await baton.callBack(descriptor('orders', 0, 1))
    await baton.pull()
    await until(async () => (await Scrape.of(baton)).by('baton_expired_leases_total')['no'] === 1)
    await baton.pull({ prefer: 'wait=60' })
    await until(async () => (await Scrape.of(baton)).by('baton_expired_leases_total')['yes'] === 1)
    const { body } = await baton.get('/tasks/orders')
    expect(body).toMatchObject({ state: 'stalled', attemptsWasted: 2, partitions: { parked: 1 } })
  })

  test('has a count of leases of disconnected clients that were undone', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    baton.app.handOff.undo((await baton.app.handOff.pull({ ...batchedPull(), waitMillis: 0 })).partitions)
    await baton.pull({ prefer: 'wait=60' })
    expect((await Scrape.of(baton)).value('baton_undone_leases_total')).toBe(1)
  })
})

describe('requests', () => {
  test('are counted by route and status, on both paths', async () => {
    const baton = await TestApp.open()
    const client = await RawConnection.open(await listening(baton.app))
    for (const request of [
      pullBytes(),
      pullBytes(),
      settleBytes('[{"leaseId":"x","outcome":"done"}]'),
      settleBytes('[1]'),
      settleBytes('['),
    ]) {
      client.send(request)
      await client.answer()
    }
    await baton.get('/pull')
    await baton.get('/pull?')
    await baton.get('/pull', { 'sec-fetch-site': 'cross-site' })
    await baton.post('/settle', { not: 'an array' })
    await baton.get('/tasks/a')
    await baton.get('/tasks/b')
    await baton.get('/nowhere')
    await baton.post('/pull')
    await baton.get('/')
    await baton.app.http.inject({ method: 'HEAD', url: '/livez' })
    const scrape = await Scrape.of(baton)
    const counted = scrape.by('baton_requests_total')
    expect(counted).toEqual({
      'GET /pull 200': 4,
      'GET /pull 403': 1,
      'POST /settle 200': 1,
      'POST /settle 400': 1,
      'POST /settle 422': 2,
      'GET /tasks/{taskId} 404': 2,
      'none none 404': 1,
      'none none 405': 1,
      'GET page 200': 1,
      'HEAD /livez 200': 1,
    })
    expect(scrape.value('baton_request_duration_seconds_count{method="GET",route="/pull"}')).toBe(5)
    expect(scrape.value('baton_request_duration_seconds_count{method="POST",route="/settle"}')).toBe(4)
    expect((await Scrape.of(baton)).by('baton_requests_total')['GET /metrics 200']).toBe(1)
  })

  test('have the name of their route under a base path, too', async () => {
    const baton = await TestApp.open({ basePath: '/baton' })
    const client = await RawConnection.open(await listening(baton.app))
    client.send(pullBytes().replace('/pull', '/baton/pull'))
    await client.answer()
    await baton.get('/baton/pull?')
    const { text } = await baton.get('/baton/metrics')
    expect(new Scrape(text).by('baton_requests_total')).toEqual({ 'GET /pull 200': 2 })
  })

  test.each([
    ['past Fastify', '/pull'],
    ['through Fastify', '/pull?'],
  ])('that wait for work are shown while they wait, and not timed: %s', async (_, path) => {
    const baton = await TestApp.open()
    const client = await RawConnection.open(await listening(baton.app))
    client.send(pullBytes({ Prefer: 'wait=60' }).replace('/pull', path))
    await until(() => baton.app.handOff.waitingPulls === 1)
    expect((await Scrape.of(baton)).value('baton_waiting_pulls')).toBe(1)
    await baton.callBack(descriptor('orders', 0, 1))
    expect((await client.answer()).body.partitions).toHaveLength(1)
    const scrape = await Scrape.of(baton)
    expect(scrape.value('baton_waiting_pulls')).toBe(0)
    expect(scrape.by('baton_requests_total')['GET /pull 200']).toBe(1)
    expect(scrape.value('baton_request_duration_seconds_count{method="GET",route="/pull"}')).toBe(0)
  })

  test('for events are shown while they are open, and counted when they end', async () => {
    const baton = await TestApp.open()
    const client = await RawConnection.open(await listening(baton.app))
    client.send(pullBytes().replace('/pull', '/events'))
    await until(async () => (await Scrape.of(baton)).value('baton_event_streams') === 1)
    client.socket.destroy()
    await until(async () => (await Scrape.of(baton)).by('baton_requests_total')['GET /events 200'] === 1)
  })
})

describe('the backlog', () => {
  test('is all that is left to do, by state', async () => {
    const baton = await TestApp.open({ maxAttempts: 1 })
    await baton.callBack(...descriptors('open', 4))
    await baton.pull()
    await baton.callBack(...descriptors('paused', 2, { record_count: 7 }))
    await baton.post('/tasks/paused/pause')
    await baton.callBack(
      ...descriptors('barrier', 1),
      descriptor('barrier', 1, 0),
      descriptor('barrier', 1, 1),
    )
    await baton.post('/tasks/barrier/level-barrier', { enabled: true })
    await baton.callBack(...descriptors('cancelled', 5))
    await baton.post('/tasks/cancelled/cancel')
    const scrape = await Scrape.of(baton)
    expect(scrape.by('baton_tasks')).toEqual({ open: 2, paused: 1, stalled: 0 })
    expect(scrape.by('baton_partitions')).toEqual({ ready: 4, held: 4, leased: 1, delayed: 0, parked: 0 })
    expect(scrape.by('baton_records')).toEqual({ ready: 400, held: 214, leased: 100, delayed: 0, parked: 0 })
    expect(scrape.value('baton_backlog_complete')).toBe(1)
  })

  test('includes stalled tasks and parked partitions, and not what is done', async () => {
    const baton = await TestApp.open({ maxAttempts: 1 })
    await baton.callBack(...descriptors('stalled', 1))
    await baton.settle(await baton.pull(), { outcome: 'failed' })
    await baton.callBack(...descriptors('done', 1))
    await baton.settle(await baton.pull())
    const scrape = await Scrape.of(baton)
    expect(scrape.by('baton_tasks')).toEqual({ open: 0, paused: 0, stalled: 1 })
    expect(scrape.by('baton_partitions')).toMatchObject({ ready: 0, leased: 0, parked: 1 })
  })
})

describe('a node', () => {
  const health = (scrape: Scrape) =>
    ['baton_ready', 'baton_draining', 'baton_store_up'].map((name) => scrape.value(name))

  test('reports that it is ready, and its version', async () => {
    const scrape = await Scrape.of(await TestApp.open())
    expect(health(scrape)).toEqual([1, 0, 1])
    expect(scrape.value(`baton_build_info{version="0.1.0",node="${process.versions.node}"}`)).toBe(1)
    expect(scrape.value('baton_process_resident_memory_bytes')).toBeGreaterThan(1e6)
    expect(scrape.value('baton_process_timers')).toBeGreaterThan(0)
  })

  test('whose store is unavailable answers with its own metrics', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    // Before it is closed: a node on PostgreSQL that has closed its store passes no request to it.
    baton.app.store.runBatch = () => Promise.reject(storeClosed())
    await baton.get('/pull')
    await baton.app.store.close()
    const scrape = await Scrape.of(baton)
    expect(health(scrape)).toEqual([0, 0, 0])
    const missing = metrics.filter(({ name }) => !scrape.families.has(name)).map(({ name }) => name)
    expect(missing).toEqual([
      'baton_tasks',
      'baton_partitions',
      'baton_records',
      'baton_backlog_complete',
      'baton_desired_workers',
      'baton_backlog_work_seconds',
      'baton_workers',
    ])
    expect(scrape.by('baton_requests_total')['GET /pull 503']).toBe(1)
    expect(scrape.value('baton_store_failures_total{verb="hand-off"}')).toBe(1)
    expect(scrape.value('baton_called_back_partitions_total{result="accepted"}')).toBe(1)
  })

  test('that can read but not write still reports the backlog', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    baton.app.store.probe = () => Promise.reject(new Error('the disk is read-only'))
    const scrape = await Scrape.of(baton)
    expect(health(scrape)).toEqual([0, 0, 0])
    expect(scrape.value('baton_partitions{state="ready"}')).toBe(1)
  })

  test('that drains reports this, and that it is not ready', async () => {
    const baton = await TestApp.open()
    baton.app.handOff.drain()
    expect(health(await Scrape.of(baton))).toEqual([0, 1, 1])
  })
})

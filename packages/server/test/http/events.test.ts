import { once } from 'node:events'
import { type EventName, eventSchemas } from '@baton/protocol'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { until } from '../../../../test/support/until.ts'
import { tickWithinLimits } from '../../src/http/admission/token-limits.ts'
import { MOST_STREAMS_PER_CALLER } from '../../src/http/routes/events-route.ts'
import { EventStream } from '../support/event-stream.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { TestApp } from '../support/test-app.ts'

const descriptor = (taskId: string, index = 0) => ({
  taskId,
  computeTableName: 'results.orders',
  partition_name: `${taskId}-0-${index}`,
  record_count: 10,
  priorityLevel: 0,
})

async function openService(...given: Parameters<typeof TestApp.open>) {
  const baton = await TestApp.open(...given)
  await baton.app.http.listen({ host: '127.0.0.1', port: 0 })
  const { port } = baton.app.http.server.address() as { port: number }
  return { baton, url: `http://127.0.0.1:${port}` }
}

describe('GET /events', () => {
  test('reports the progress of a task', async () => {
    const { baton, url } = await openService()
    const stream = await EventStream.open(url)
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(stream.headers.get('cache-control')).toBe('no-store')
    await baton.callBack(descriptor('orders'))
    const called = await stream.next('task', ({ data }) => data['partitions'].ready === 1)
    expect(called.data).toMatchObject({ taskId: 'orders', state: 'open' })
    const [partition] = await baton.pull()
    await stream.next('task', ({ data }) => data['partitions'].leased === 1)
    await baton.post('/settle', [{ leaseId: partition?.lease?.id, outcome: 'done' }])
    const done = await stream.next('task', ({ data }) => data['partitions'].done === 1)
    expect(done.data).toMatchObject({ taskId: 'orders', state: 'done' })
  })

  test('reports a partition that ran out of attempts, with the reason', async () => {
    const { baton, url } = await openService({ maxAttempts: 1 })
    const stream = await EventStream.open(url)
    await baton.callBack(descriptor('orders', 7))
    const [partition] = await baton.pull()
    const reason = 'line one\nline two'
    await baton.post('/settle', [{ leaseId: partition?.lease?.id, outcome: 'failed', reason }])
    const { data } = await stream.next('parked')
    expect(data).toEqual({
      taskId: 'orders',
      partition_name: 'orders-0-7',
      priorityLevel: 0,
      attempts: 1,
      reason,
    })
  })

  test('reports a stalled task', async () => {
    const { baton, url } = await openService({ maxAttempts: 1, levelBarrier: true })
    const stream = await EventStream.open(url)
    const higher = { ...descriptor('orders'), partition_name: 'orders-1-0', priorityLevel: 1 }
    await baton.callBack(descriptor('orders'), higher)
    const [partition] = await baton.pull()
    await baton.post('/settle', [{ leaseId: partition?.lease?.id, outcome: 'failed' }])
    const { data } = await stream.next('task', ({ data }) => data['partitions'].parked === 1)
    expect(data).toMatchObject({ taskId: 'orders', state: 'stalled', partitions: { held: 1 } })
  })

  test('reports a new instance', async () => {
    const { baton, url } = await openService()
    const stream = await EventStream.open(url)
    await stream.settled(baton)
    await baton.pull({ 'x-instance-id': 'loader-7' })
    // Heartbeats are stored periodically; requesting the instances stores them at once.
    await baton.get('/instances')
    const { data } = await stream.next('instance', (event) => event.data['instanceId'] === 'loader-7')
    expect(data).toMatchObject({ role: 'worker', status: 'up' })
  })

  test('matches its schemas', async () => {
    const { baton, url } = await openService({ maxAttempts: 1 })
    const stream = await EventStream.open(url)
    await baton.callBack(descriptor('orders'))
    const [partition] = await baton.pull({ 'x-instance-id': 'loader-7' })
    await baton.post('/settle', [{ leaseId: partition?.lease?.id, outcome: 'failed' }])
    await stream.next('parked')
    for (const { name, data } of stream.seen) {
      const { format: _, ...schema } = eventSchemas[name as EventName] as { format?: string }
      expect([name, ...Value.Errors(schema as never, data)].filter((fault) => !isFormat(fault))).toEqual([
        name,
      ])
    }
  })

  test('resumes where a connection broke', async () => {
    const { baton, url } = await openService()
    // Another client stays connected: the node keeps events while there is any.
    const other = await EventStream.open(url)
    const stream = await EventStream.open(url)
    await baton.callBack(descriptor('first'))
    const { id } = await stream.nextWithId()
    stream.close()
    await baton.callBack(descriptor('missed'))
    await other.next('task', ({ data }) => data['taskId'] === 'missed')
    const resumed = await EventStream.open(url, { 'last-event-id': id })
    await resumed.next('task', ({ data }) => data['taskId'] === 'missed')
    expect(resumed.seen.map(({ name }) => name)).not.toContain('reset')
  })

  test('resumes where a connection broke before the first event', async () => {
    const { baton, url } = await openService()
    const other = await EventStream.open(url)
    for (const taskId of ['first', 'second']) {
      const stream = await EventStream.open(url)
      const id = await stream.openingId()
      stream.close()
      await baton.callBack(descriptor(taskId))
      await other.next('task', ({ data }) => data['taskId'] === taskId)
      const resumed = await EventStream.open(url, { 'last-event-id': id })
      await resumed.next('task', ({ data }) => data['taskId'] === taskId)
      expect(resumed.seen.map(({ name }) => name)).not.toContain('reset')
    }
  })

  test('reports when missed events are no longer available', async () => {
    const { url } = await openService()
    const stream = await EventStream.open(url, { 'last-event-id': 'from-another-life' })
    const { data } = await stream.next('reset')
    expect(data).toEqual({})
  })

  test('ends when the service closes, which does not wait for its readers', async () => {
    const { baton, url } = await openService({}, { timeouts: { closeMillis: 3_600_000 } })
    const stream = await EventStream.open(url)
    const closing = baton.app.close()
    await stream.ended
    await closing
  })

  test('does not support HEAD', async () => {
    const { url } = await openService()
    expect((await fetch(`${url}/events`, { method: 'HEAD' })).status).toBe(405)
  })
})

function isFormat(fault: unknown): boolean {
  return typeof fault === 'object' && (fault as { keyword?: string }).keyword === 'format'
}

describe('many event streams', () => {
  const tokens = [
    { name: 'greedy', token: tokenNamed('g'), roles: ['viewer'] },
    { name: 'other', token: tokenNamed('o'), roles: ['viewer'] },
  ]

  test('of one token are refused beyond a share of those of the node, and others get theirs', async () => {
    const { url } = await openService({ tokensFile: await tokensFile({ tokens }) })
    const statusOf = async (token: string) => {
      const client = await RawConnection.open(Number(new URL(url).port))
      client.send(
        `GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tokenNamed(token)}\r\n\r\n`,
      )
      const [head] = (await once(client.socket, 'data')) as [Buffer]
      return { client, status: Number(head.toString('latin1').slice(9, 12)) }
    }
    const greedy = await Promise.all(Array.from({ length: MOST_STREAMS_PER_CALLER }, () => statusOf('g')))
    expect(new Set(greedy.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await statusOf('g')).status).toBe(503)
    expect((await EventStream.open(url, bearer(tokenNamed('o')))).headers.get('content-type')).toContain(
      'event-stream',
    )
    greedy[0]?.client.socket.destroy()
    await until(async () => (await statusOf('g')).status === 200)
  })

  test('of one limited token share what they are sent', () => {
    const tick = { id: 'a-1', events: [{ kind: 'reset' as const }, { kind: 'reset' as const }] }
    const token = { tasks: ['sales-'] }
    expect(tickWithinLimits(token, tick)).toBe(tickWithinLimits(token, tick))
    expect(tickWithinLimits({ tasks: ['stock-'] }, tick)).not.toBe(tickWithinLimits(token, tick))
  })
})

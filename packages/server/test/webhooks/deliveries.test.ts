import type { Delivery, SubscriptionStatus } from '@baton/protocol'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { descriptor, descriptors, TestApp } from '../support/test-app.ts'
import { type Behaviour, Receiver } from './support/receiver.ts'

const LOOPBACK = { webhookNetworks: ['127.0.0.0/8'], webhookBackoffSeconds: 0.002 }

async function subscribed(baton: TestApp, url: string | null, changes: object = {}) {
  const { status, body } = await baton.post('/subscriptions', url === null ? changes : { url, ...changes })
  expect(status).toBe(200)
  return body as { id: string; secret: string }
}

async function finish(baton: TestApp, taskId: string, levels = 1): Promise<void> {
  await baton.callBack(...Array.from({ length: levels }, (_, level) => descriptor(taskId, level, 0)))
  for (let level = 0; level < levels; level += 1) await baton.settle(await baton.pull())
}

const deliveries = async (baton: TestApp, id: string): Promise<Delivery[]> =>
  (await baton.get(`/subscriptions/${id}/deliveries`)).body.deliveries

const allDelivered = (baton: TestApp, id: string) =>
  until(async () => (await deliveries(baton, id)).every(({ state }) => state === 'delivered'))

describe('a working receiver', () => {
  test('gets CloudEvents, signed as Standard Webhooks specifies', async () => {
    const baton = await TestApp.open({ ...LOOPBACK, webhookSource: 'https://baton.example/' })
    const receiver = await Receiver.start()
    const { secret } = await subscribed(baton, receiver.url)
    await finish(baton, 'orders/ü', 2)
    await until(() => receiver.taken.length === 3)
    receiver.expectSigned(secret)
    expect(receiver.firstTaken.map(({ type }) => type)).toEqual(['level.done', 'level.done', 'task.done'])
    const done = receiver.taken.at(-1)
    expect(done?.headers).toMatchObject({
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'webhook-id': done?.event.id,
    })
    expect(done?.event).toMatchObject({
      specversion: '1.0',
      source: 'https://baton.example/',
      subject: 'orders/ü',
      datacontenttype: 'application/json',
      data: {
        taskId: 'orders/ü',
        generation: 1,
        partitions: { total: 2, done: 2 },
        records: { declared: 200 },
        attempts: 2,
      },
    })
  })

  test('gets each event once, as the delivery log shows', async () => {
    const baton = await TestApp.open(LOOPBACK)
    const receiver = await Receiver.start()
    const { id } = await subscribed(baton, receiver.url, { types: ['task.done'], taskPrefix: 'a' })
    for (const task of ['a1', 'b1', 'a2']) await finish(baton, task)
    await until(() => receiver.taken.length === 2)
    await allDelivered(baton, id)
    const log = await deliveries(baton, id)
    expect(log.map(({ taskId, attempts, status, error }) => [taskId, attempts, status, error])).toEqual([
      ['a2', 1, 204, null],
      ['a1', 1, 204, null],
    ])
    expect(receiver.received).toHaveLength(2)
  })

  test('gets an event again when an operator resends it', async () => {
    const baton = await TestApp.open(LOOPBACK)
    const receiver = await Receiver.start()
    const { id } = await subscribed(baton, receiver.url, { types: ['task.done'] })
    await finish(baton, 'a')
    const [first] = await until(async () => {
      const log = await deliveries(baton, id)
      return log[0]?.state === 'delivered' ? log : undefined
    })
    const again = await baton.post(`/subscriptions/${id}/deliveries/${first?.event}/redeliver`)
    expect(again.body).toMatchObject({ event: first?.event, state: 'pending', attempts: 0 })
    await until(() => receiver.taken.length === 2)
    expect(new Set(receiver.taken.map(({ event }) => event.id)).size).toBe(1)
  })

  test('can change its secret: both secrets sign for a while', async () => {
    const baton = await TestApp.open(LOOPBACK)
    const receiver = await Receiver.start()
    const { id, secret: old } = await subscribed(baton, receiver.url, { types: ['task.done'] })
    const { secret } = (await baton.post(`/subscriptions/${id}/rotate-secret`)).body
    expect(secret).not.toBe(old)
    await finish(baton, 'a')
    await until(() => receiver.taken.length === 1)
    for (const one of [old, secret]) receiver.expectSigned(one)
    const given = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
    await baton.post(`/subscriptions/${id}/rotate-secret`, { secret: given, overlapSeconds: 0 })
    await finish(baton, 'b')
    await until(() => receiver.taken.length === 2)
    const last = receiver.taken[1]
    const verify = (one: string) =>
      new Webhook(one).verify(last?.text ?? '', last?.headers as Record<string, string>)
    expect(() => verify(given)).not.toThrow()
    expect(() => verify(secret)).toThrow('No matching signature found')
  })
})

describe('a receiver that fails', () => {
  const failing: [string, () => Behaviour][] = [
    ['answers 500', () => failuresFirst(3, () => 500)],
    ['answers 404', () => failuresFirst(1, () => 404)],
    ['hangs up without an answer', () => failuresFirst(3, (_, __, request) => void request.socket.destroy())],
    [
      'dies in the middle of its answer',
      () =>
        failuresFirst(2, (_, response, request) => {
          request.socket.write('HTTP/1.1 200 OK\r\ncontent-le')
          request.socket.destroy()
          void response
        }),
    ],
    [
      'answers 429 with Retry-After',
      () => failuresFirst(1, (_, response) => void response.writeHead(429, { 'retry-after': '1' }).end()),
    ],
  ]

  test.each(failing)('and %s gets every event, in order for each task', async (_, behaviour) => {
    const baton = await TestApp.open(LOOPBACK)
    const receiver = await Receiver.start(behaviour())
    const { id, secret } = await subscribed(baton, receiver.url)
    for (const task of ['a', 'b', 'c']) await finish(baton, task, 2)
    await until(() => receiver.firstTaken.length === 9)
    receiver.expectInOrder()
    receiver.expectSigned(secret)
    await allDelivered(baton, id)
  })

  test('and requests a pause gets nothing until then, or until an operator changes its subscription', async () => {
    const baton = await TestApp.open(LOOPBACK)
    const pausing = await Receiver.start(
      (_, response) => void response.writeHead(429, { 'retry-after': '600' }).end(),
    )
    const { id } = await subscribed(baton, pausing.url, { types: ['task.done'] })
    await finish(baton, 'a')
    const [first] = await until(async () => {
      const log = await deliveries(baton, id)
      return log[0]?.status === 429 ? log : undefined
    })
    pausing.behave = () => 204
    const other = await Receiver.start()
    const refused = await baton.ask('DELETE', '/subscriptions/sub_unknown')
    expect(refused.status).toBe(404)
    expect((await baton.post(`/subscriptions/${id}/deliveries/9999/redeliver`)).status).toBe(404)
    await subscribed(baton, other.url, { types: ['task.done'] })
    for (const task of ['b', 'c']) {
      await finish(baton, task)
      await until(() => other.taken.some(({ event }) => event.subject === task))
    }
    expect(pausing.received).toHaveLength(1)
    await baton.post(`/subscriptions/${id}/deliveries/${first?.event}/redeliver`)
    await until(() => pausing.taken.length === 3)
  })

  test('for one task only gets events of other tasks, while those of the task wait', async () => {
    const baton = await TestApp.open({ ...LOOPBACK, webhookBackoffSeconds: 30 })
    const receiver = await Receiver.start(({ event }) => (event.subject === 'bad' ? 500 : 204))
    await subscribed(baton, receiver.url, { types: ['level.done'] })
    await finish(baton, 'bad', 3)
    for (const task of ['a', 'b', 'c']) await finish(baton, task, 2)
    await until(() => receiver.firstTaken.length === 6)
    const bad = receiver.received.filter(({ event }) => event.subject === 'bad')
    expect(bad.map(({ event }) => event.data['priorityLevel'])).toEqual([0])
  })

  test('for a while gets all events afterwards', async () => {
    const baton = await TestApp.open(LOOPBACK)
    const receiver = await Receiver.start()
    const { id } = await subscribed(baton, receiver.url)
    await receiver.down()
    for (let at = 0; at < 20; at += 1) await finish(baton, `t${at}`)
    await until(async () => (await deliveries(baton, id)).some(({ attempts }) => attempts > 1))
    const open = await until(async () => {
      const [found] = (await baton.get('/subscriptions')).body.subscriptions as SubscriptionStatus[]
      return found?.circuitOpenUntil === null ? undefined : found
    })
    expect(open).toMatchObject({ pending: 40, state: 'active' })
    expect(Date.parse(open.oldestPendingAt ?? '')).toBeLessThanOrEqual(Date.now())
    const [failed] = (await deliveries(baton, id)).filter(({ attempts }) => attempts > 0)
    expect(failed?.error).toContain('ECONNREFUSED')
    await receiver.up()
    await until(() => receiver.firstTaken.length === 40)
    receiver.expectInOrder()
  })

  test('with 410 has its subscription disabled until an operator enables it', async () => {
    const baton = await TestApp.open(LOOPBACK)
    const receiver = await Receiver.start(() => 410)
    const { id } = await subscribed(baton, receiver.url, { types: ['task.done'] })
    await finish(baton, 'a')
    const disabled = await until(async () => {
      const { body } = await baton.get('/subscriptions')
      return body.subscriptions[0].state === 'disabled' ? body.subscriptions[0] : undefined
    })
    expect(disabled.reason).toBe('the receiver answered 410 Gone, which disables the subscription')
    await finish(baton, 'b')
    receiver.behave = () => 204
    expect((await baton.post(`/subscriptions/${id}/enable`)).body).toMatchObject({
      state: 'active',
      reason: null,
    })
    await finish(baton, 'c')
    await until(() => receiver.taken.length === 2)
    // What was answered 410 is sent again; nothing is stored while a subscription is disabled.
    expect(receiver.taken.map(({ event }) => event.subject).toSorted()).toEqual(['a', 'c'])
  })

  test('to answer, 90 times over, does not delay others', async () => {
    const baton = await TestApp.open(LOOPBACK)
    let ended = 0
    const hanging = await Receiver.start((_, response) => {
      response.on('close', () => {
        ended += 1
      })
      return null
    })
    for (let count = 0; count < 90; count += 1)
      await subscribed(baton, `${hanging.url}/${count}`, { types: ['task.done'] })
    const receiver = await Receiver.start()
    await subscribed(baton, receiver.url, { types: ['task.done'] })
    await finish(baton, 'a')
    await until(() => receiver.taken.length === 1)
    expect(ended).toBe(0)
  })
})

describe('private networks', () => {
  const service = TestApp.shared()

  test.each([
    'http://127.0.0.1:9/',
    'http://0x7f.1/',
    'http://2130706433/',
    'http://[::1]:9/',
    'http://[::ffff:10.0.0.1]/',
    'http://10.1.2.3/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00::1]/',
    'http://0.0.0.0/',
  ])('%s is refused in a subscription', async (url) => {
    const { status, body } = await service().post('/subscriptions', { url })
    expect(status).toBe(422)
    expect(body.errors[0].detail).toContain('is not on the public internet')
  })

  test('a name that resolves there is refused', async () => {
    const baton = await TestApp.open({ webhookBackoffSeconds: 0.001 })
    const receiver = await Receiver.start()
    const { id } = await subscribed(baton, `http://localhost:${receiver.port}/`)
    await finish(baton, 'a')
    const [delivery] = await until(async () => {
      const log = (await deliveries(baton, id)).filter(({ attempts }) => attempts > 0)
      return log.length > 0 ? log : undefined
    })
    expect(delivery?.error).toContain('localhost is not on the public internet')
    expect(receiver.received).toEqual([])
  })
})

describe('over HTTP', () => {
  test('errors of a subscription are reported', async () => {
    const baton = await TestApp.open()
    const broken = [
      [{ url: 'ftp://a.example/' }, '/url'],
      [{ url: 'http://u:p@a.example/' }, '/url'],
      [{ url: 'http://' }, '/url'],
      [{ types: ['task.ended'] }, '/types/0'],
      [{ types: [] }, '/types'],
      [{ secret: 'whsec_short' }, '/secret'],
      [{ secret: `whsec_${'A'.repeat(33)}` }, '/secret'],
      [{ taskPrefix: 5 }, '/taskPrefix'],
      [{ uri: 'http://a.example/' }, '/uri'],
    ] as const
    for (const [body, pointer] of broken) {
      const answer = await baton.post('/subscriptions', body)
      expect([body, answer.status, answer.body.errors?.[0]?.pointer]).toEqual([body, 422, pointer])
    }
  })

  test('a subscription can be listed and removed; its secret is shown once', async () => {
    const baton = await TestApp.open()
    const { body } = await baton.post('/subscriptions', { url: 'https://a.example/hooks' })
    const { secret, ...rest } = body
    expect(secret).toMatch(/^whsec_/)
    const status = { pending: 0, oldestPendingAt: null, circuitOpenUntil: null }
    expect((await baton.get('/subscriptions')).body.subscriptions).toEqual([{ ...rest, ...status }])
    expect((await baton.ask('DELETE', `/subscriptions/${body.id}`)).body).toEqual({
      id: body.id,
      removed: true,
    })
    expect((await baton.get('/subscriptions')).body.subscriptions).toEqual([])
    for (const [method, path] of [
      ['DELETE', ''],
      ['GET', '/deliveries'],
      ['GET', '/events'],
      ['POST', '/enable'],
      ['POST', '/rotate-secret'],
      ['POST', '/deliveries/1/redeliver'],
    ] as const) {
      const { status, body: problem } = await baton.ask(method, `/subscriptions/${rest.id}${path}`)
      expect([status, problem.code]).toEqual([404, 'subscription_unknown'])
    }
  })

  test('without a URL, events are kept and can be read from a position', async () => {
    const baton = await TestApp.open()
    const { id } = await subscribed(baton, null, { types: ['task.done'] })
    const read = async (query = '') => (await baton.get(`/subscriptions/${id}/events${query}`)).body
    expect(await read()).toEqual({ events: [], next: '0000000000000000', missed: false })
    for (const task of ['a', 'b', 'c']) await finish(baton, task)
    const first = await read('?limit=2')
    const second = await read(`?after=${first.next}`)
    const subjects = (page: { events: { subject: string }[] }) => page.events.map(({ subject }) => subject)
    expect([subjects(first), subjects(second)]).toEqual([['a', 'b'], ['c']])
    expect(await read(`?after=${second.next}`)).toEqual({ events: [], next: second.next, missed: false })
    expect((await baton.get(`/subscriptions/${id}/events?after=x`)).body.code).toBe('parameter_invalid')
    const [kept] = await deliveries(baton, id)
    expect(kept).toMatchObject({ state: 'kept', attempts: 0, nextAttemptAt: null })
    const again = await baton.post(`/subscriptions/${id}/deliveries/${kept?.event}/redeliver`)
    expect(again.body.code).toBe('delivery_unknown')
  })

  test('the delivery log is paged', async () => {
    const baton = await TestApp.open()
    const { id } = await subscribed(baton, null, { types: ['partition.parked'] })
    await baton.callBack(...descriptors('a', 5))
    for (let at = 0; at < 5; at += 1)
      await baton.settle(await baton.pull(), { outcome: 'failed', final: true })
    const events: number[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await baton.get(`/subscriptions/${id}/deliveries?limit=2${query}`)
      events.push(...body.deliveries.map(({ event }: Delivery) => event))
      cursor = body.next
    }
    const [parked] = (await baton.get(`/subscriptions/${id}/events`)).body.events
    expect(parked.data).toEqual({
      taskId: 'a',
      generation: 1,
      partition_name: 'a-0-0',
      priorityLevel: 0,
      record_count: 100,
      attempts: 1,
      reason: null,
    })
    expect(events).toHaveLength(5)
    expect(events).toEqual(events.toSorted((a, b) => b - a))
  })
})

/** The first requests fail; all later ones are accepted. */
function failuresFirst(count: number, fail: Behaviour): Behaviour {
  let left = count
  return (...given) => {
    if (left === 0) return 204
    left -= 1
    return fail(...given)
  }
}

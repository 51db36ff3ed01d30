import { describe, expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { AuditLog } from '../../src/http/observability/audit.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const tokens = [
  { name: 'ops', token: tokenNamed('ops'), roles: ['operator', 'producer'] },
  { name: 'compute', token: tokenNamed('compute'), roles: ['producer'] },
  { name: 'screen', token: tokenNamed('screen'), roles: ['viewer'] },
  { name: 'worker', token: tokenNamed('worker'), roles: ['worker'] },
]
const as = (name: string) => bearer(tokenNamed(name))

async function guarded() {
  const lines: Record<string, unknown>[] = []
  const note = (fields: Record<string, unknown>) => {
    if (fields['audit'] === true) lines.push(fields)
  }
  const log = { ...quiet, info: note, warn: note }
  const baton = await TestApp.open({ tokensFile: await tokensFile({ tokens }) }, { log })
  expect((await baton.post('/call-back', descriptors('orders', 2), as('compute'))).status).toBe(200)
  return { baton, lines }
}

describe('the audit', () => {
  test('has each change with the name of its token, its source and its request', async () => {
    const { baton, lines } = await guarded()
    const settings = { maxAttempts: 2 }
    await baton.post('/tasks/orders/pause', undefined, as('ops'))
    await baton.post('/tasks/orders/pause', undefined, as('ops'))
    await baton.post('/tasks/orders/seal', { partitions: 2 }, as('compute'))
    await baton.ask('PATCH', '/tasks/orders/settings', { body: settings, headers: as('compute') })
    await baton.get('/tasks/orders', as('ops'))
    const { body } = await baton.get('/audit', as('ops'))
    const entry = (action: string, name: string, request: object | null) => ({
      at: expect.any(String),
      name,
      address: '127.0.0.1',
      action,
      taskId: 'orders',
      target: null,
      changed: 1,
      request,
    })
    expect(body).toEqual({
      entries: [
        entry('settings', 'compute', settings),
        entry('seal', 'compute', { partitions: 2 }),
        entry('pause', 'ops', null),
      ],
      next: null,
    })
    // The log has every control request, also those that change nothing.
    expect(lines.map(({ name, action, outcome }) => [name, action, outcome])).toEqual([
      ['ops', 'POST /tasks/orders/pause', 'done'],
      ['ops', 'POST /tasks/orders/pause', 'done'],
      ['compute', 'POST /tasks/orders/seal', 'done'],
      ['compute', 'PATCH /tasks/orders/settings', 'done'],
    ])
  })

  test('has what a call-back changes besides its partitions', async () => {
    const { baton } = await guarded()
    const headers = { 'Baton-Seal': 'true', 'Task-Settings': 'max-attempts=2' }
    await baton.post('/call-back', descriptors('sales', 1), { ...as('compute'), ...headers })
    const { body } = await baton.get('/audit?task=sales', as('ops'))
    expect(body.entries).toMatchObject([
      { action: 'seal', name: 'compute', request: headers },
      { action: 'settings', name: 'compute', request: headers },
    ])
  })

  test('has changes that are not about a task, without secrets', async () => {
    const { baton } = await guarded()
    await baton.get('/pull', { ...as('worker'), 'X-Instance-Id': 'worker-7' })
    await baton.post('/instances/worker-7/release', undefined, as('ops'))
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const { body: subscription } = await baton.post(
      '/subscriptions',
      { types: ['task.done'], secret },
      as('ops'),
    )
    await baton.post(`/subscriptions/${subscription.id}/rotate-secret`, undefined, as('ops'))
    await baton.ask('DELETE', `/subscriptions/${subscription.id}`, { headers: as('ops') })
    const { body, text } = await baton.get('/audit', as('ops'))
    expect(body.entries).toMatchObject([
      { action: 'unsubscribe', target: subscription.id },
      { action: 'rotate-secret', target: subscription.id },
      { action: 'subscribe', target: subscription.id, taskId: null, request: null },
      { action: 'release', target: 'worker-7', taskId: null, changed: 1 },
    ])
    expect(text).not.toContain('whsec_')
  })

  test('has nothing that a request did not change', async () => {
    const { baton } = await guarded()
    await baton.post('/tasks/orders/retry', { level: 7 }, as('ops'))
    await baton.post('/tasks/orders/resume', undefined, as('ops'))
    await baton.post('/tasks/nothing/cancel', undefined, as('ops'))
    await baton.ask('DELETE', '/subscriptions/none', { headers: as('ops') })
    await baton.post('/tasks/orders/pause', undefined, as('screen'))
    const request = { body: { paused: false }, headers: as('ops') }
    expect((await baton.ask('PATCH', '/tables/results.orders/settings', request)).status).toBe(200)
    expect((await baton.get('/audit', as('ops'))).body.entries).toEqual([])
  })

  test('is searched by task and by name, and paged', async () => {
    const { baton } = await guarded()
    await baton.post('/call-back', descriptors('sales', 1), as('ops'))
    for (const verb of ['pause', 'resume', 'pause']) await baton.post(`/tasks/orders/${verb}`, {}, as('ops'))
    await baton.post('/tasks/sales/seal', undefined, as('ops'))
    await baton.post('/tasks/orders/seal', undefined, as('compute'))
    const actions = async (query: string) => {
      const { body } = await baton.get(`/audit?${query}`, as('ops'))
      return body.entries.map(({ taskId, action }: Record<string, string>) => `${taskId} ${action}`)
    }
    const ofOrders = ['orders seal', 'orders pause', 'orders resume', 'orders pause']
    expect(await actions('task=orders')).toEqual(ofOrders)
    expect(await actions('name=compute')).toEqual(['orders seal'])
    expect(await actions('task=sales&name=ops')).toEqual(['sales seal'])
    expect(await actions('task=sales&name=compute')).toEqual([])
    const seen: string[] = []
    let cursor: string | null = ''
    for (let pages = 0; cursor !== null && pages < 3; pages += 1) {
      const { body } = await baton.get(
        `/audit?task=orders&limit=3${cursor && `&cursor=${cursor}`}`,
        as('ops'),
      )
      seen.push(...body.entries.map(({ action }: { action: string }) => `orders ${action}`))
      cursor = body.next
    }
    expect(seen).toEqual(ofOrders)
    for (const query of ['cursor=x', 'task=', 'name=', `name=${'n'.repeat(201)}`, 'task=a&task=b', 'taks=a'])
      expect((await baton.get(`/audit?${query}`, as('ops'))).body.code, query).toBe('parameter_invalid')
  })

  test('names the first partitions of a long request', async () => {
    const { baton } = await guarded()
    const { body: pulled } = await baton.get('/pull?batch=2', as('worker'))
    await baton.settle(pulled.partitions, { outcome: 'failed', final: true }, as('worker'))
    const names = ['orders-0-0', ...Array<string>(20).fill('orders-0-1')]
    expect((await baton.post('/tasks/orders/retry', { partitions: names }, as('ops'))).status).toBe(200)
    const { body } = await baton.get('/audit', as('ops'))
    expect(body.entries).toMatchObject([
      { action: 'retry', changed: 2, request: { partitions: names.slice(0, 10), partitionsOmitted: 11 } },
    ])
  })
})

describe('a task', () => {
  test('says who paused, cancelled, sealed and changed it, and when', async () => {
    const { baton } = await guarded()
    const control = async () => (await baton.get('/tasks/orders', as('ops'))).body.control
    expect(await control()).toEqual({ paused: null, cancelled: null, sealed: null, changed: null })
    const at = expect.any(String)
    await baton.post('/tasks/orders/seal', undefined, as('compute'))
    await baton.post('/tasks/orders/pause', undefined, as('ops'))
    await baton.post('/tasks/orders/owner', { name: 'other' }, as('ops'))
    const [sealed, changed] = [
      { at, name: 'compute' },
      { at, name: 'ops' },
    ]
    const paused = { at, name: 'ops', because: null }
    expect(await control()).toEqual({ paused, cancelled: null, sealed, changed })
    await baton.post('/tasks/orders/resume', undefined, as('ops'))
    await baton.post('/tasks/orders/cancel', undefined, as('ops'))
    expect(await control()).toEqual({ paused: null, cancelled: { at, name: 'ops' }, sealed, changed })
  })

  test('has a feed of what happened to it', async () => {
    const { baton } = await guarded()
    const { body: pulled } = await baton.get('/pull?batch=2', as('worker'))
    await baton.post('/tasks/orders/pause', undefined, as('ops'))
    await baton.post('/tasks/orders/resume', undefined, as('ops'))
    await baton.settle(pulled.partitions, { outcome: 'done' }, as('worker'))
    const entry = { at: expect.any(String), name: null, level: null, partitions: null, target: null }
    expect((await baton.get('/tasks/orders/feed', as('screen'))).body).toEqual({
      taskId: 'orders',
      entries: [
        { ...entry, event: 'done', request: null },
        { ...entry, event: 'level-done', level: 0, partitions: 2, request: null },
        { ...entry, event: 'resume', name: 'ops', partitions: 1, request: null },
        { ...entry, event: 'pause', name: 'ops', partitions: 1, request: null },
        { ...entry, event: 'call-back', name: 'compute', request: null },
      ],
      complete: true,
    })
    expect((await baton.get('/tasks/nothing/feed', as('ops'))).body.code).toBe('task_unknown')
    await baton.post('/call-back', descriptors('sales', 1), as('ops'))
    expect((await baton.get('/tasks/sales/feed', as('compute'))).body.code).toBe('token_limited')
  })
})

describe('the audit of a node', () => {
  test('has each refused token, and never the token', async () => {
    const { baton, lines } = await guarded()
    await baton.get('/tasks', bearer('not-a-token-of-this-service'))
    await baton.post('/tasks/orders/pause', undefined, as('screen'))
    await baton.post('/tasks/orders/cancel', undefined, as('compute'))
    await baton.get('/tasks')
    const { body, text } = await baton.get('/audit/node', as('ops'))
    expect(body.entries).toMatchObject([
      { kind: 'refused', name: 'compute', action: 'POST /tasks/orders/cancel', outcome: 'token_refused' },
      { kind: 'refused', name: 'screen', action: 'POST /tasks/orders/pause', outcome: 'token_refused' },
      { kind: 'refused', name: null, action: 'GET /tasks', outcome: 'token_unknown', address: '127.0.0.1' },
    ])
    expect(lines).toHaveLength(3)
    expect(text + JSON.stringify(lines)).not.toContain('not-a-token')
    const first = await baton.get('/audit/node?limit=2', as('ops'))
    expect(first.body.entries).toHaveLength(2)
    const rest = await baton.get(`/audit/node?limit=2&cursor=${first.body.next}`, as('ops'))
    expect(rest.body).toMatchObject({ entries: [{ outcome: 'token_unknown' }], next: null })
  })
})

describe('under a flood', () => {
  const refusal = (address: string) =>
    ({
      kind: 'refused',
      name: null,
      address,
      action: 'GET /pull',
      outcome: 'token_unknown',
      detail: null,
    }) as const
  const reload = (action: string) =>
    ({ kind: 'reload', name: null, address: null, action, outcome: 'done', detail: null }) as const

  function audited() {
    let now = 1_780_000_000_000
    const lines: object[] = []
    const log = { ...quiet, warn: (fields: object) => lines.push(fields), info: () => {} }
    const audit = new AuditLog(log, () => now)
    const pass = (millis: number) => {
      now += millis
    }
    return { audit, lines, pass }
  }

  test('refusals from one address are one entry, and the log has a bound', () => {
    const { audit, lines, pass } = audited()
    audit.note(reload('first'))
    for (let time = 0; time < 5000; time += 1) audit.note(refusal('10.0.0.9'))
    expect(audit.page(null, 10).entries).toMatchObject([
      { address: '10.0.0.9', times: 5000 },
      { action: 'first', times: 1 },
    ])
    expect(lines).toHaveLength(60)
    pass(120_000)
    audit.note(refusal('10.0.0.9'))
    expect(lines.at(-2)).toEqual({ audit: true, leftOut: 4940 })
    expect(audit.page(null, 10).entries).toHaveLength(3)
  })

  test('reloads are kept before refusals from many addresses, and the newest before older ones', () => {
    const { audit } = audited()
    audit.note(reload('first'))
    for (let time = 0; time < 3000; time += 1) audit.note(refusal(`10.0.${time >> 8}.${time & 255}`))
    const actions = () => audit.page(null, 10_000).entries.map(({ action }) => action)
    expect(actions()).toHaveLength(1001)
    expect(actions().at(-1)).toBe('first')
    for (let time = 0; time < 1000; time += 1) audit.note(reload(`later ${time}`))
    expect(actions()).toHaveLength(2000)
    expect(actions()).not.toContain('first')
  })
})

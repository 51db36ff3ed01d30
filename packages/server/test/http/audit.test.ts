import { describe, expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { AuditLog } from '../../src/http/observability/audit.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const tokens = [
  { name: 'ops', token: tokenNamed('ops'), roles: ['operator', 'producer'] },
  { name: 'compute', token: tokenNamed('compute'), roles: ['producer'] },
  { name: 'screen', token: tokenNamed('screen'), roles: ['viewer'] },
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
  test('has each control request with the name of its token, its source and its result', async () => {
    const { baton, lines } = await guarded()
    await baton.post('/tasks/orders/pause', undefined, as('ops'))
    await baton.post('/tasks/orders/retry', { level: 7 }, as('ops'))
    await baton.post('/tasks/nothing/cancel', undefined, as('ops'))
    await baton.post('/tasks/orders/seal', undefined, as('compute'))
    await baton.get('/tasks/orders', as('ops'))
    const entry = (action: string, name: string, outcome = 'done', detail: unknown = null) => ({
      kind: 'order',
      name,
      address: '127.0.0.1',
      action,
      outcome,
      detail,
    })
    const expected = [
      entry('POST /tasks/orders/pause', 'ops'),
      entry('POST /tasks/orders/retry', 'ops', 'partition_unknown', expect.any(String)),
      entry('POST /tasks/nothing/cancel', 'ops', 'task_unknown', expect.any(String)),
      entry('POST /tasks/orders/seal', 'compute'),
    ]
    const { body } = await baton.get('/audit', as('ops'))
    expect(body.entries).toMatchObject(expected.toReversed())
    expect(body.next).toBeNull()
    expect(lines.map(({ audit: _, ...fields }) => ({ detail: null, ...fields }))).toEqual(expected)
  })

  test('has each refused authentication, and never the token', async () => {
    const { baton, lines } = await guarded()
    await baton.get('/tasks', bearer('not-a-token-of-this-service'))
    await baton.post('/tasks/orders/pause', undefined, as('screen'))
    await baton.post('/tasks/orders/cancel', undefined, as('compute'))
    await baton.get('/tasks')
    const { body, text } = await baton.get('/audit', as('ops'))
    expect(body.entries).toMatchObject([
      { kind: 'refused', name: 'compute', action: 'POST /tasks/orders/cancel', outcome: 'token_refused' },
      { kind: 'refused', name: 'screen', action: 'POST /tasks/orders/pause', outcome: 'token_refused' },
      { kind: 'refused', name: null, action: 'GET /tasks', outcome: 'token_unknown', address: '127.0.0.1' },
    ])
    expect(lines).toHaveLength(3)
    expect(text + JSON.stringify(lines)).not.toContain('not-a-token')
  })

  test('has control requests that are not about a task, too', async () => {
    const { baton } = await guarded()
    await baton.ask('DELETE', '/subscriptions/none', { headers: as('ops') })
    const { body } = await baton.get('/audit', as('ops'))
    expect(body.entries).toMatchObject([{ kind: 'order', name: 'ops', action: 'DELETE /subscriptions/none' }])
  })

  test('has the control requests of all callers without tokens', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 1))
    await baton.post('/tasks/orders/pause')
    await baton.post('/subscriptions', { types: ['task.done'] })
    expect((await baton.get('/audit')).body.entries).toMatchObject([
      { kind: 'order', name: null, action: 'POST /subscriptions', outcome: 'done' },
      { kind: 'order', name: null, action: 'POST /tasks/orders/pause', outcome: 'done' },
    ])
  })

  test('is paged', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 1))
    for (const verb of ['pause', 'resume', 'pause']) await baton.post(`/tasks/orders/${verb}`)
    const seen: string[] = []
    let path = '/audit?limit=2'
    for (let pages = 0; pages < 2; pages += 1) {
      const { body } = await baton.get(path)
      seen.push(...body.entries.map(({ action }: { action: string }) => action.split('/').at(-1)))
      path = `/audit?limit=2&cursor=${body.next}`
      expect(body.next === null).toBe(pages === 1)
    }
    expect(seen).toEqual(['pause', 'resume', 'pause'])
    expect((await baton.get('/audit?cursor=x')).body.code).toBe('parameter_invalid')
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
  const order = (action: string) =>
    ({ kind: 'order', name: 'ops', address: null, action, outcome: 'done', detail: null }) as const

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
    audit.note(order('first'))
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

  test('control requests are kept before refusals from many addresses, and the newest before older ones', () => {
    const { audit } = audited()
    audit.note(order('first'))
    for (let time = 0; time < 3000; time += 1) audit.note(refusal(`10.0.${time >> 8}.${time & 255}`))
    const actions = () => audit.page(null, 10_000).entries.map(({ action }) => action)
    expect(actions()).toHaveLength(1001)
    expect(actions().at(-1)).toBe('first')
    for (let time = 0; time < 1000; time += 1) audit.note(order(`later ${time}`))
    expect(actions()).toHaveLength(2000)
    expect(actions()).not.toContain('first')
  })
})

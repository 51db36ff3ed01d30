import { describe, expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

describe('a store that cannot commit', () => {
  test.each([
    ['GET', '/pull', undefined],
    ['POST', '/call-back', [descriptor('orders', 0, 1)]],
    ['POST', '/settle', [{ leaseId: '1-1-aaaaaaaaaaaaaaaa', outcome: 'done' }]],
    ['POST', '/renew', ['1-1-aaaaaaaaaaaaaaaa']],
    ['GET', '/tasks', undefined],
    ['GET', '/readyz', undefined],
  ])('%s %s is answered 503 with Retry-After', async (method, path, body) => {
    const baton = await TestApp.open()
    await baton.app.store.close()
    const answer = await baton.ask(method, path, { body })
    expect([answer.status, answer.body.code]).toEqual([503, 'store_unavailable'])
    expect(answer.body.retryable).toBe(true)
    expect(answer.headers['retry-after']).toBe('1')
  })

  test('does not make the process appear dead', async () => {
    const baton = await TestApp.open()
    await baton.app.store.close()
    expect((await baton.get('/livez')).status).toBe(200)
  })
})

describe('an unexpected failure', () => {
  test('is answered 500 without details, and logged with the instance of the problem', async () => {
    const logged: [object, string][] = []
    const log = { ...quiet, error: (fields: object, text: string) => logged.push([fields, text]) }
    const baton = await TestApp.open({}, { log })
    baton.app.handOff.views.tasks = () => Promise.reject(new Error('the password is hunter2'))
    const answer = await baton.get('/tasks')
    expect([answer.status, answer.body.code]).toEqual([500, 'internal'])
    expect(answer.text).not.toContain('hunter2')
    expect(logged).toMatchObject([
      [{ instance: answer.body.instance, err: { message: 'the password is hunter2' } }, expect.any(String)],
    ])
  })
})

describe('a node that drains', () => {
  test('is alive but not ready', async () => {
    const baton = await TestApp.open()
    baton.app.handOff.drain()
    const answer = await baton.get('/readyz')
    expect([answer.status, answer.body.code]).toEqual([503, 'shutting_down'])
    expect(answer.headers['retry-after']).toBe('1')
    expect((await baton.get('/livez')).status).toBe(200)
  })

  test('hands out nothing more, closes connections, and still accepts settlements', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const [partition] = await baton.pull()
    baton.app.handOff.drain()
    const empty = await baton.get('/pull', { prefer: 'wait=60' })
    expect(empty.body.partitions).toEqual([])
    expect(empty.headers['connection']).toBe('close')
    const settlements = [{ leaseId: partition?.lease?.id, outcome: 'done' }]
    const answer = await baton.post('/settle', settlements, { prefer: 'batch=1' })
    expect(answer.body).toMatchObject({ settled: [partition?.lease?.id], partitions: [] })
  })
})

import { describe, expect, test } from 'vitest'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { EventStream } from '../support/event-stream.ts'
import { listening } from '../support/raw-connection.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

const tokens = [
  { name: 'any', token: tokenNamed('any'), roles: ['producer', 'operator'] },
  { name: 'sales', token: tokenNamed('sales'), roles: ['producer'], tasks: ['sales-', 'returns-'] },
  { name: 'etl', token: tokenNamed('etl'), roles: ['producer'], tables: ['results.orders', 'results.items'] },
  { name: 'sales ops', token: tokenNamed('ops'), roles: ['operator'], tasks: ['sales-'] },
  { name: 'sales wall', token: tokenNamed('wall'), roles: ['viewer'], tasks: ['sales-'] },
]
const as = (name: string) => bearer(tokenNamed(name))

async function guarded(): Promise<TestApp> {
  const baton = await TestApp.open({ tokensFile: await tokensFile({ tokens }) })
  for (const taskId of ['sales-1', 'stock-1'])
    expect((await baton.post('/call-back', [descriptor(taskId, 0, 1)], as('any'))).status).toBe(200)
  return baton
}

describe('a token that is limited to tasks by prefixes', () => {
  test('calls back those tasks and no others', async () => {
    const baton = await guarded()
    const callBack = (taskId: string) => baton.post('/call-back', [descriptor(taskId, 0, 1)], as('sales'))
    expect((await callBack('sales-2')).status).toBe(200)
    expect((await callBack('returns-2')).status).toBe(200)
    const { status, body } = await callBack('resales-2')
    expect([status, body.code]).toEqual([403, 'token_limited'])
    expect(body.detail).toBe('the token is limited to tasks whose id begins with "sales-" or "returns-"')
    expect((await baton.get('/tasks/resales-2', as('any'))).status).toBe(404)
  })

  test.each(['', '/partitions', '/manifest'])(
    'reads those tasks and no others: /tasks/{taskId}%s',
    async (path) => {
      const baton = await guarded()
      expect((await baton.get(`/tasks/sales-1${path}`, as('wall'))).status).toBe(200)
      // The answer does not reveal whether the task exists.
      for (const taskId of ['stock-1', 'stock-2']) {
        const { status, body } = await baton.get(`/tasks/${taskId}${path}`, as('wall'))
        expect([status, body.code]).toEqual([403, 'token_limited'])
      }
    },
  )

  test.each(['pause', 'resume', 'seal', 'level-barrier', 'retry', 'skip-parked', 'cancel'])(
    'controls those tasks and no others: %s',
    async (verb) => {
      const baton = await guarded()
      const refused = await baton.post(`/tasks/stock-1/${verb}`, undefined, as('ops'))
      expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
      expect((await baton.post(`/tasks/sales-1/${verb}`, undefined, as('ops'))).status).toBe(200)
      expect((await baton.get('/tasks/stock-1', as('any'))).body).toMatchObject({
        state: 'open',
        sealed: false,
      })
    },
  )

  test('sees those tasks in lists and events, and nothing about all tasks', async () => {
    const baton = await guarded()
    const { body } = await baton.get('/tasks', as('wall'))
    expect(body.tasks.map(({ taskId }: { taskId: string }) => taskId)).toEqual(['sales-1'])
    for (const path of ['/totals', '/instances', '/metrics', '/subscriptions'])
      expect((await baton.get(path, as('wall'))).body.code).toBe('token_limited')
    const { body: scale } = await baton.get('/scale', as('wall'))
    const { body: own } = await baton.get('/scale?task=sales-1', as('any'))
    expect(scale).toEqual(own)
    expect(scale.backlog).not.toEqual((await baton.get('/scale', as('any'))).body.backlog)
    expect((await baton.get('/scale?task=stock-1', as('wall'))).body.code).toBe('token_limited')
    expect((await baton.get('/audit', as('ops'))).body.code).toBe('token_limited')
    expect((await baton.post('/subscriptions', {}, as('ops'))).body.code).toBe('token_limited')
    const events = await EventStream.open(`http://127.0.0.1:${await listening(baton.app)}`, as('wall'))
    for (const taskId of ['stock-1', 'sales-1'])
      await baton.post(`/tasks/${taskId}/pause`, undefined, as('any'))
    await events.next('task', ({ data }) => data['state'] === 'paused')
    expect(new Set(events.seen.map(({ data }) => data['taskId']))).toEqual(new Set(['sales-1']))
  })

  test('sees the tasks of an instance only within its limits', async () => {
    const baton = await guarded()
    for (const taskId of ['sales-1', 'stock-1']) {
      const headers = { ...as('any'), 'x-instance-id': 'compute' }
      await baton.post('/call-back', [descriptor(taskId, 0, 2)], headers)
    }
    const tasksFor = async (name: string) =>
      (await baton.get('/test/instance-status?instanceId=compute', as(name))).body.tasks.map(
        ({ taskId }: { taskId: string }) => taskId,
      )
    expect((await tasksFor('any')).toSorted()).toEqual(['sales-1', 'stock-1'])
    expect(await tasksFor('wall')).toEqual(['sales-1'])
  })
})

test('a token that is limited to tables calls back partitions of those tables and no others, all or nothing', async () => {
  const baton = await guarded()
  const of = (index: number, computeTableName: string) => descriptor('mixed', 0, index, { computeTableName })
  const own = [of(0, 'results.orders'), of(1, 'results.items')]
  const { status, body } = await baton.post('/call-back', [...own, of(2, 'results.people')], as('etl'))
  expect([status, body.code]).toEqual([403, 'token_limited'])
  expect(body.detail).toBe(
    'the token is limited to partitions of "results.orders" or "results.items", and the element at /2 has the table "results.people"; nothing was stored',
  )
  expect((await baton.get('/tasks/mixed', as('any'))).status).toBe(404)
  expect((await baton.post('/call-back', own, as('etl'))).status).toBe(200)
})

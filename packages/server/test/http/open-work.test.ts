import { describe, expect, test } from 'vitest'
import { tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { Scrape } from '../support/scrape.ts'
import { descriptor, descriptors, leaseId, TestApp } from '../support/test-app.ts'

describe('the limit of lanes', () => {
  test('refuses a call-back for now, and names the tasks with most lanes', async () => {
    const baton = await TestApp.open({ maxLanes: 2 })
    await baton.callBack(descriptor('orders', 0, 0), descriptor('orders', 1, 0))
    const { status, headers, body } = await baton.post('/call-back', [descriptor('sales', 0, 0)])
    expect([status, body.code, headers['retry-after']]).toEqual([503, 'too_many_lanes', '10'])
    expect(body.detail).toContain('"orders" (2)')
  })

  test('refuses a retry', async () => {
    const baton = await TestApp.open({ maxLanes: 1 })
    await baton.callBack(descriptor('orders', 0, 0))
    const { status, body } = await baton.post('/tasks/orders/retry')
    expect([status, body.code]).toEqual([503, 'too_many_lanes'])
  })

  test('names no task of others to a producer', async () => {
    const tokens = ['one', 'two'].map((name) => ({ name, token: tokenNamed(name), roles: ['producer'] }))
    const baton = await TestApp.open({ maxLanes: 1, tokensFile: await tokensFile({ tokens }) })
    const as = (name: string) => ({ authorization: `Bearer ${tokenNamed(name)}` })
    await baton.post('/call-back', [descriptor('orders', 0, 0)], as('one'))
    const { body } = await baton.post('/call-back', [descriptor('sales', 0, 0)], as('two'))
    expect(body.code).toBe('too_many_lanes')
    expect(body.detail).not.toContain('orders')
  })
})

describe('the limit of leases', () => {
  test('a pull beyond it is empty at once, and says why', async () => {
    const baton = await TestApp.open({ maxLeases: 1 })
    await baton.callBack(...descriptors('orders', 3))
    const [first] = await baton.pull()
    const { headers, body } = await baton.get('/pull', { prefer: 'wait=60' })
    const because = {
      code: 'too_many_leases',
      detail: 'there are 1 leases, as many as --max-leases allows; pull again when some have ended',
    }
    expect(body).toEqual({ partitions: [], because })
    expect(headers['retry-after']).toBe('1')
    const unknown = [{ leaseId: 'x', outcome: 'done' }]
    const beside = await baton.post('/settle', unknown, { prefer: 'batch=1' })
    expect(beside.body).toMatchObject({ partitions: [], because })
    expect(beside.headers['retry-after']).toBe('1')
    const settled = await baton.post('/settle', [{ leaseId: leaseId(first), outcome: 'done' }], {
      prefer: 'batch=5',
    })
    expect(settled.body.partitions).toHaveLength(1)
    expect(settled.body.because).toBeUndefined()
  })
})

test('metrics show the open work and its limits', async () => {
  const baton = await TestApp.open({ maxLanes: 7, maxLeases: 5 })
  await baton.callBack(descriptor('orders', 0, 0), descriptor('orders', 1, 0))
  await baton.pull()
  const scrape = await Scrape.of(baton)
  expect(scrape.value('baton_lanes')).toBe(2)
  expect(scrape.value('baton_leases')).toBe(1)
  expect(scrape.value('baton_open_work_limit{of="lanes"}')).toBe(7)
  expect(scrape.value('baton_open_work_limit{of="leases"}')).toBe(5)
})

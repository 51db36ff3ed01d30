import { describe, expect, test } from 'vitest'
import { descriptor, TestApp } from '../support/test-app.ts'

const HOT = '/tables/results.orders/settings'

describe('PATCH /tables/{table}/settings', () => {
  test('merges: what is not named stays, and null goes back to the default', async () => {
    const baton = await TestApp.open()
    const patch = async (body: unknown) => (await baton.ask('PATCH', HOT, { body })).body.settings
    expect(await patch({ maxLeases: 3 })).toEqual({ maxLeases: 3, paused: false })
    expect(await patch({ paused: true })).toEqual({ maxLeases: 3, paused: true })
    expect(await patch({})).toEqual({ maxLeases: 3, paused: true })
    expect(await patch({ maxLeases: null, paused: null })).toEqual({ maxLeases: null, paused: false })
  })

  test.each([
    [{ maxLeases: 0 }, '/maxLeases'],
    [{ maxLeases: -1 }, '/maxLeases'],
    [{ maxLeases: 1.5 }, '/maxLeases'],
    [{ maxLeases: '8' }, '/maxLeases'],
    [{ maxLeases: 1e16 }, '/maxLeases'],
    [{ paused: 'yes' }, '/paused'],
    [{ paused: 1 }, '/paused'],
    [{ maxLeases: 4, pasued: true }, '/pasued'],
    [{ maxLeases: false, paused: 0 }, '/maxLeases', '/paused'],
    [[], ''],
    ['8', ''],
    [null, ''],
  ])('refuses %j with a pointer, and changes nothing', async (body, ...pointers) => {
    const baton = await TestApp.open()
    await baton.ask('PATCH', HOT, { body: { maxLeases: 2 } })
    const { status, body: problem } = await baton.ask('PATCH', HOT, { body })
    expect([status, problem.code]).toEqual([422, 'contract_violation'])
    const errors = problem.errors as { pointer: string; detail: string }[]
    expect(errors.map(({ pointer }) => pointer)).toEqual(pointers)
    for (const { detail } of errors) expect(detail).not.toBe('')
    expect((await baton.get(HOT)).body.settings).toEqual({ maxLeases: 2, paused: false })
  })

  test('refuses what is not a table', async () => {
    const baton = await TestApp.open()
    for (const name of ['orders', 'a.b.c', 'a.', '%00.a', 'x'.repeat(2000)]) {
      const { status, body } = await baton.ask('PATCH', `/tables/${name}/settings`, {
        body: { maxLeases: 2 },
      })
      expect([name, status, body.code]).toEqual([name, 422, 'parameter_invalid'])
    }
    expect((await baton.get('/tables')).body.tables).toEqual([])
  })

  test('are not those of a table that nobody has', async () => {
    const { status, body } = await (await TestApp.open()).get('/tables/results.nobody')
    expect([status, body.code]).toEqual([404, 'table_unknown'])
    expect(body.detail).toBe('no table "results.nobody" has open work or settings')
  })

  test('refuses a limit, but not a pause, in at-most-once delivery', async () => {
    const baton = await TestApp.open({ delivery: 'at-most-once' })
    await baton.callBack(descriptor('orders', 0, 0))
    const { status, body } = await baton.ask('PATCH', HOT, { body: { maxLeases: 2, paused: true } })
    expect([status, body.errors]).toEqual([
      422,
      [{ pointer: '/maxLeases', detail: 'a limit requires leases, and this service delivers at most once' }],
    ])
    expect((await baton.get(HOT)).body.settings).toEqual({ maxLeases: null, paused: false })
    expect((await baton.ask('PATCH', HOT, { body: { paused: true } })).status).toBe(200)
    expect(await baton.pull()).toEqual([])
  })
})

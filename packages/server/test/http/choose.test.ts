import { describe, expect, test } from 'vitest'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

const of = (taskId: string, index: number, computeTableName: string) =>
  descriptor(taskId, 0, index, { computeTableName })

const names = ({ body }: { body: { partitions: { partition_name: string }[] } }) =>
  body.partitions.map(({ partition_name }) => partition_name)

async function withTwoTables(): Promise<TestApp> {
  const baton = await TestApp.open()
  await baton.callBack(of('a', 0, 'r.sales'), of('a', 1, 'r.orders'), of('a', 2, 'r.sales'))
  await baton.callBack(of('b&c=d', 0, 'r.städte'))
  return baton
}

describe('a pull with a filter', () => {
  test('selects by one table, by several, and by task', async () => {
    const baton = await withTwoTables()
    expect(names(await baton.get('/pull?table=r.orders&batch=9'))).toEqual(['a-0-1'])
    expect(names(await baton.get(`/pull?task=${encodeURIComponent('b&c=d')}&batch=9`))).toEqual(['b&c=d-0-0'])
    expect(names(await baton.get('/pull?table=r.none&table=r.sales&table=r.sales&batch=9'))).toEqual([
      'a-0-0',
      'a-0-2',
    ])
    const empty = await baton.get('/pull?table=r.sales')
    expect([empty.body, empty.headers['retry-after']]).toEqual([{ partitions: [] }, '1'])
  })

  test('may have its amounts in the query, where they are capped', async () => {
    const baton = await withTwoTables()
    const answer = await baton.get('/pull?records=150&wait=9999&table=r.sales')
    expect(names(answer)).toEqual(['a-0-0', 'a-0-2'])
    expect(answer.headers).not.toHaveProperty('preference-applied')
    const both = await baton.get('/pull?batch=5', { prefer: 'records=1' })
    expect(both.headers['preference-applied']).toBe('records=1')
    expect(names(both)).toHaveLength(1)
  })

  test.each([
    ['tables=r.sales', 'did you mean table?'],
    ['level=3', 'its parameters are table, task, batch, records, and wait'],
    ['table=sales', 'table must have the form <schema>.<table>'],
    ['table=', 'table must'],
    ['task=', 'task must'],
    ['task=%00', 'task must not contain NUL'],
    ['batch=0', 'batch must be a whole number of partitions, at least 1'],
    ['batch=1&batch=2', 'batch must not be repeated'],
    ['wait=soon', 'wait must be a whole number of seconds'],
    [Array.from({ length: 51 }, (_, at) => `task=t${at}`).join('&'), 'at most 50 tasks'],
  ])('of %s is refused, and leases nothing', async (query, says) => {
    const baton = await withTwoTables()
    const unknown = [{ leaseId: '1-1-aaaaaaaaaaaaaaaa', outcome: 'done' }]
    for (const answer of [
      await baton.get(`/pull?${query}`),
      await baton.post(`/settle?${query}`, unknown, { prefer: 'records=1' }),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
      expect(answer.body.detail).toContain(says)
    }
    expect(await baton.pull({ prefer: 'batch=9' })).toHaveLength(4)
  })

  test('is refused with an amount in both places, or with invalid UTF-8', async () => {
    const baton = await withTwoTables()
    const twice = await baton.get('/pull?batch=2', { prefer: 'batch=2' })
    expect([twice.status, twice.body.detail]).toEqual([
      422,
      'batch is in both the query and the Prefer header; send it once',
    ])
    expect((await baton.get('/pull?table=%ff')).body.code).toBe('bad_request')
  })

  test('may be part of a settle, which is refused if it has a filter but no pull', async () => {
    const baton = await withTwoTables()
    const [first] = await baton.pull()
    const done = [{ leaseId: leaseId(first), outcome: 'done' }]
    const alone = await baton.post('/settle?table=r.orders', done)
    expect([alone.status, alone.body.code]).toEqual([422, 'parameter_invalid'])
    expect(alone.body.detail).toContain('add batch=1 to pull')
    const answer = await baton.post('/settle?table=r.orders&batch=5', done)
    expect([answer.body.settled, names(answer)]).toEqual([[leaseId(first)], ['a-0-1']])
  })

  test('that waits is woken only for matching partitions', async () => {
    const baton = await TestApp.open()
    const pulling = baton.get('/pull?table=r.sales&wait=60')
    const tried = () => baton.app.handOff.storeCounts.of('runBatch').seconds.counts.reduce((a, b) => a + b, 0)
    while (baton.app.handOff.waitingPulls === 0) await new Promise(setImmediate)
    const before = tried()
    await baton.callBack(of('a', 0, 'r.orders'))
    await baton.callBack(of('b', 0, 'r.orders'))
    expect(tried() - before).toBe(2)
    await baton.callBack(of('c', 0, 'r.sales'))
    expect(names(await pulling)).toEqual(['c-0-0'])
  })

  test('is answered by the fast path as by Fastify', async () => {
    const baton = await withTwoTables()
    const port = await listening(baton.app)
    const client = await RawConnection.open(port)
    const ask = async (path: string) => {
      client.send(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      const { status, body } = await client.answer()
      return [status, body.partitions?.length ?? body.detail]
    }
    expect(await ask('/pull?table=r.orders')).toEqual([200, 1])
    expect(await ask('/pull?table=r.orders')).toEqual([200, 0])
    expect(await ask('/pull?table=r.sales')).toEqual([200, 1])
    const [status, detail] = await ask('/pull?tabel=r.sales')
    expect([status, detail]).toEqual([
      422,
      '"tabel" is not a query parameter of this route; did you mean table?',
    ])
    expect(await ask('/pull')).toEqual([200, 1])
  })
})

import { describe, expect, test } from 'vitest'
import { descriptor, descriptors, TestApp } from '../support/test-app.ts'

async function worked(): Promise<TestApp> {
  const baton = await TestApp.open()
  await baton.callBack(...descriptors('orders', 3), descriptor('orders', 1, 0))
  await baton.settle(await baton.pull({ prefer: 'batch=4' }))
  return baton
}

const sumOf = (points: readonly { readonly partitions: number }[]) =>
  points.reduce((sum, { partitions }) => sum + partitions, 0)

describe('the history of a task', () => {
  test('is available by minute', async () => {
    const baton = await worked()
    const { status, body } = await baton.get('/tasks/orders/throughput')
    expect(status).toBe(200)
    const { records } = (await baton.get('/tasks/orders')).body
    expect(body).toMatchObject({ taskId: 'orders', step: 'minute' })
    expect(sumOf(body.points)).toBe(4)
    for (const point of body.points) {
      expect(Object.keys(point)).toEqual(['at', 'partitions', 'records'])
      expect(point.at).toMatch(/:00\.000Z$/)
    }
    expect(body.points.reduce((sum: number, point: { records: number }) => sum + point.records, 0)).toBe(
      records.done,
    )
    expect(Date.parse(body.to) - Date.parse(body.from)).toBeGreaterThanOrEqual(86_400_000)
    await baton.expectSound()
  })

  test('is available by hour and by level, and for a period', async () => {
    const baton = await worked()
    const hours = (await baton.get('/tasks/orders/throughput?step=hour&by=level')).body
    const partitionsOf = (level: number) =>
      sumOf(hours.points.filter((point: { level: number }) => point.level === level))
    expect([partitionsOf(0), partitionsOf(1)]).toEqual([3, 1])
    const { status, body } = await baton.get(
      '/tasks/orders/throughput?from=2020-01-01T00:00:30Z&to=2020-01-01T02:00:00%2B01:00',
    )
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        taskId: 'orders',
        step: 'minute',
        from: '2020-01-01T00:00:00.000Z',
        to: '2020-01-01T01:00:00.000Z',
        points: [],
      },
    })
  })

  test('is refused for an invalid query', async () => {
    const baton = await worked()
    for (const [query, says] of [
      ['step=second', 'step must be one of minute, hour'],
      ['by=table', 'by must be one of level'],
      ['from=yesterday', 'from must be a time with a UTC offset, such as 2026-03-01T12:00:00Z'],
      ['from=2026-03-01', 'from must be a time'],
      ['to=2026-02-31T25:00:00Z', 'to must be a time'],
      ['from=2026-02-30T00:00:00Z', 'from has a day that does not exist'],
      ['to=2025-02-29T23:00:00-05:00', 'to has a day that does not exist'],
      ['from=9000-01-01T00:00:00Z', 'from must not be in the future without to, which is now by default'],
      ['from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z', 'from must be earlier than to'],
      ['step=hour&step=hour', 'step must not be repeated'],
    ]) {
      const { status, body } = await baton.get(`/tasks/orders/throughput?${query}`)
      expect([query, status, body.code]).toEqual([query, 422, 'parameter_invalid'])
      expect(body.detail).toContain(says)
    }
    const leapDay = 'from=2024-02-29T23:00:00-05:00&to=2024-02-29T23:01:00-05:00'
    expect((await baton.get(`/tasks/orders/throughput?${leapDay}`)).status).toBe(200)
    const unknown = await baton.get('/tasks/nothing/throughput')
    expect([unknown.status, unknown.body.code]).toEqual([404, 'task_unknown'])
  })
})

test('all tasks together have a history, too', async () => {
  const baton = await worked()
  await baton.callBack(...descriptors('returns', 2))
  await baton.settle(await baton.pull({ prefer: 'batch=2' }))
  const { status, body } = await baton.get('/throughput?step=hour')
  expect({ status, keys: Object.keys(body) }).toEqual({ status: 200, keys: ['step', 'from', 'to', 'points'] })
  expect(sumOf(body.points)).toBe(6)
  expect((await baton.get('/throughput?by=level')).status).toBe(422)
  await baton.expectSound()
})

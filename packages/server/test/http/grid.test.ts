import { GRID_PARTITIONS_COUNTED } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { descriptor, descriptors, TestApp } from '../support/test-app.ts'

const totalOf = (cells: readonly { readonly counts: Readonly<Record<string, number>> }[]) =>
  cells.reduce((sum, { counts }) => sum + Object.values(counts).reduce((a, b) => a + b, 0), 0)

describe('the grid of a level', () => {
  test('has a cell for each partition, in the order of the index, with its state', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 1, 40), descriptor('orders', 1, 7), descriptor('orders', 1, 3))
    const [first] = await baton.pull()
    await baton.post('/settle', [{ leaseId: first?.lease?.id, outcome: 'failed', reason: 'no', final: true }])
    await baton.pull()
    const { status, body } = await baton.get('/tasks/orders/grid')
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        taskId: 'orders',
        level: 1,
        partitions: 3,
        sampled: false,
        cells: [
          { first: 3, last: 3, counts: { ready: 1 } },
          { first: 7, last: 7, counts: { leased: 1 } },
          { first: 40, last: 40, counts: { parked: 1 } },
        ],
      },
    })
    await baton.post('/tasks/orders/pause')
    const { cells } = (await baton.get('/tasks/orders/grid?cells=1')).body
    expect(cells).toEqual([{ first: 3, last: 40, counts: { held: 1, leased: 1, parked: 1 } }])
    expect((await baton.get('/tasks/orders/grid?level=0')).body).toMatchObject({ partitions: 0, cells: [] })
  })

  test('names ranges of indexes that a list of partitions takes', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', 30), descriptor('orders', 1, 12))
    const { first, last } = (await baton.get('/tasks/orders/grid?cells=3')).body.cells[1]
    const { body } = await baton.get(`/tasks/orders/partitions?level=0&indexes=${first}-${last}`)
    const names = body.partitions.map((row: { partition_name: string }) => row.partition_name)
    expect(names).toEqual(Array.from({ length: 10 }, (_, at) => `orders-0-${at + 10}`))
    expect(body.next).toBeNull()
    for (const query of ['indexes=1-2', 'level=0&indexes=2-1', 'level=0&indexes=x'])
      expect([query, (await baton.get(`/tasks/orders/partitions?${query}`)).status]).toEqual([query, 422])
  })

  test('of very many partitions counts some of each cell, and says so', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...descriptors('orders', GRID_PARTITIONS_COUNTED))
    const all = (await baton.get('/tasks/orders/grid?cells=100')).body
    expect(all).toMatchObject({ sampled: false, partitions: GRID_PARTITIONS_COUNTED })
    expect([all.cells.length, totalOf(all.cells)]).toEqual([100, GRID_PARTITIONS_COUNTED])
    await baton.callBack(descriptor('orders', 0, 5 * GRID_PARTITIONS_COUNTED))
    const some = (await baton.get('/tasks/orders/grid?cells=100')).body
    expect(some).toMatchObject({ sampled: true, partitions: GRID_PARTITIONS_COUNTED + 1 })
    expect(totalOf(some.cells)).toBeLessThan(GRID_PARTITIONS_COUNTED)
    expect(some.cells.at(-1)).toMatchObject({ last: 5 * GRID_PARTITIONS_COUNTED, counts: { ready: 1 } })
  })

  test('needs a known task and a number of cells that fits', async () => {
    const baton = await TestApp.open()
    expect((await baton.get('/tasks/none/grid')).status).toBe(404)
    await baton.callBack(...descriptors('orders', 1))
    for (const query of ['cells=0', 'cells=2001', 'level=x', 'cell=3'])
      expect([query, (await baton.get(`/tasks/orders/grid?${query}`)).status]).toEqual([query, 422])
  })
})

import { DatabaseSync } from 'node:sqlite'
import { expect, test, vi } from 'vitest'
import { descriptor, TestApp } from '../support/test-app.ts'

/** What the page requests, and the most rows that may be read for it. Each store below has more of everything. */
const views: readonly [path: string, most: number][] = [
  ['/tasks?limit=100', 210],
  ['/totals', 10],
  ['/tasks/large', 220],
  ['/tasks/large/partitions?limit=100', 220],
  ['/tasks/large/partitions?level=0&state=parked&limit=100', 220],
  ['/tasks/large/partitions?level=0&indexes=20000-20100&limit=100', 220],
  // A level of more than 20,000 partitions is sampled.
  ['/tasks/large/grid?level=0&cells=1500', 21_000],
  ['/tasks/large/feed', 50],
  ['/tasks/large/throughput?step=minute', 50],
  ['/throughput?step=minute', 50],
  ['/tables?limit=100', 10],
  ['/instances?limit=100', 110],
  ['/instances?search=worker-1&limit=50', 150],
  ['/test/instance-status?instanceId=worker-1', 10],
  ['/instances/worker-1/leases', 10],
  ['/instances/worker-1/attempts', 10],
]

const LEVEL = 22_000
const LEVELS = 600
const OTHERS = 300
const PER_ARRAY = 10_000

async function largeStore(): Promise<TestApp> {
  const baton = await TestApp.open()
  const deep = Array.from({ length: LEVEL }, (_, index) => descriptor('large', 0, index))
  const many = Array.from({ length: LEVELS }, (_, level) =>
    descriptor('large', level + 1, 0, { computeTableName: `results.table_${level}` }),
  )
  const all = [...deep, ...many]
  for (let at = 0; at < all.length; at += PER_ARRAY) await baton.callBack(...all.slice(at, at + PER_ARRAY))
  await Promise.all(
    Array.from({ length: OTHERS }, (_, at) => baton.callBack(descriptor(`small-${at}`, 9, 0))),
  )
  const pulls = Array.from({ length: OTHERS }, (_, at) => baton.pull({ 'x-instance-id': `worker-${at}` }))
  const pulled = (await Promise.all(pulls)).flat()
  await baton.settle(pulled.slice(0, 250), { outcome: 'failed', reason: 'locked', final: true })
  return baton
}

interface Statement {
  all(...values: unknown[]): unknown[]
  get(...values: unknown[]): unknown
  iterate(...values: unknown[]): Iterable<unknown>
}

/** Counts the rows that statements return from now on, until the mocks are restored. */
function countRows(): () => number {
  const db = new DatabaseSync(':memory:')
  const prototype: Statement = Object.getPrototypeOf(db.prepare('SELECT 1'))
  db.close()
  let rows = 0
  const { all, get, iterate } = prototype
  vi.spyOn(prototype, 'all').mockImplementation(function (this: Statement, ...values) {
    const found = all.apply(this, values)
    rows += found.length
    return found
  })
  vi.spyOn(prototype, 'get').mockImplementation(function (this: Statement, ...values) {
    const found = get.apply(this, values)
    if (found !== undefined) rows += 1
    return found
  })
  vi.spyOn(prototype, 'iterate').mockImplementation(function* (this: Statement, ...values) {
    for (const row of iterate.apply(this, values)) {
      rows += 1
      yield row
    }
  })
  return () => {
    const counted = rows
    rows = 0
    return counted
  }
}

test('no view of the page reads more than a bounded number of rows', async () => {
  const baton = await largeStore()
  const rowsRead = countRows()
  const exceeded: string[] = []
  try {
    for (const [path, most] of views) {
      // The first one writes rows, and what follows reads no other.
      await baton.get(path)
      rowsRead()
      const { status } = await baton.get(path)
      const rows = rowsRead()
      expect([path, status]).toEqual([path, 200])
      if (rows > most) exceeded.push(`${path} read ${rows} rows`)
    }
  } finally {
    vi.restoreAllMocks()
  }
  expect(exceeded).toEqual([])
})

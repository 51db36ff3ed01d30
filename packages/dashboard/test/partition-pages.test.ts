import type { PartitionRow } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { PartitionPages } from '../src/task/partition-pages.ts'

const ROWS_PER_PAGE = 10

/** A list of this many rows, paged by cursor; `matches` leaves gaps, as a filter does. */
function listOf(count: number, matches: (index: number) => boolean = () => true) {
  const asked: (string | null)[] = []
  const pages = new PartitionPages(async (cursor) => {
    asked.push(cursor)
    const start = Number(cursor ?? 0)
    const end = Math.min(count, start + ROWS_PER_PAGE)
    const indexes = Array.from({ length: end - start }, (_, offset) => start + offset).filter(matches)
    const rows = indexes.map((index) => ({ partition_name: `row-${index}` }) as PartitionRow)
    return { rows, next: end < count ? String(end) : null }
  })
  return { pages, asked }
}

async function growTo(pages: PartitionPages, length: number): Promise<void> {
  while (pages.length < length && pages.hasMore) await pages.grow()
}

describe('a list that is longer than the visible part', () => {
  test('grows page by page, to its end', async () => {
    const { pages } = listOf(25)
    expect([pages.length, pages.hasMore]).toEqual([0, true])
    await growTo(pages, 25)
    expect([pages.length, pages.hasMore]).toEqual([25, false])
    expect(pages.row(24)?.partition_name).toBe('row-24')
    expect(pages.row(25)).toBeUndefined()
  })

  test('requests a page once for several readers', async () => {
    const { pages, asked } = listOf(25)
    await Promise.all([pages.grow(), pages.grow(), pages.grow()])
    expect(asked).toEqual([null])
  })

  test('skips pages without matches', async () => {
    const { pages } = listOf(300, (index) => index === 3 || index === 255)
    await growTo(pages, 2)
    expect([pages.row(0)?.partition_name, pages.row(1)?.partition_name]).toEqual(['row-3', 'row-255'])
  })

  test('keeps few rows however far one scrolls, and fetches earlier rows again', async () => {
    const { pages, asked } = listOf(10_000)
    await growTo(pages, 10_000)
    await pages.refresh(9980, 9999)
    const inMemory = Array.from({ length: 10_000 }, (_, at) => pages.row(at)).filter(
      (row) => row !== undefined,
    )
    expect(inMemory.length).toBeLessThan(400)
    expect(pages.lacks(0, 20)).toBe(true)
    asked.length = 0
    await pages.refresh(0, 20)
    expect(asked).toEqual([null, '10', '20'])
    expect(pages.row(20)?.partition_name).toBe('row-20')
  })

  test('closes gaps when rows leave a filter', async () => {
    let isGone = false
    const { pages } = listOf(20, (index) => !(isGone && index < 5))
    await growTo(pages, 20)
    isGone = true
    await pages.refresh(0, 9)
    expect(pages.length).toBe(15)
    expect(pages.row(5)?.partition_name).toBe('row-10')
  })
})

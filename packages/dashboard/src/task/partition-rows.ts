import type { PartitionsOptions } from '@baton/client'
import type { TaskView } from '@baton/protocol'
import { signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { PartitionFilter, TaskRoute } from '../route.ts'
import { client } from '../service/connection.ts'
import { PartitionPages } from './partition-pages.ts'

/** The number of partitions that match a filter, from the counters of the task; null if they do not tell. */
export function matchingCount(view: TaskView, filter: PartitionFilter): number | null {
  const { state, level, indexes, name, holder, reason } = filter
  if (indexes !== null || name + holder + reason !== '') return null
  const counts = level === null ? view.partitions : view.levels.find((one) => one.level === level)?.partitions
  return counts?.[state ?? 'total'] ?? 0
}

/**
 * Fixed heights, so that the position of every row is known without rendering it. Same numbers as in the
 * style sheet.
 */
const WIDE = 40
const NARROW = 58

/** On a phone, a row has a second line instead of some columns. */
const narrow = matchMedia('(max-width: 640px)')

export const rowHeight = signal(narrow.matches ? NARROW : WIDE)

narrow.addEventListener('change', () => {
  rowHeight.value = narrow.matches ? NARROW : WIDE
})

/** Rows rendered beyond the visible ones, so that scrolling does not show gaps. */
const MARGIN = 12
const FIRST_GUESS = 30

/**
 * The visible rows of a scrolling list; `last` is exclusive. The unfolded details have their own height. The
 * range is large enough wherever they are in the list.
 */
function useVisibleRows(
  box: RefObject<HTMLElement | null>,
  length: number,
  unfolded: number,
): { first: number; last: number } {
  const [range, setRange] = useState({ first: 0, last: FIRST_GUESS })
  useEffect(() => {
    const element = box.current
    if (element === null) return
    let frame = 0
    const measure = () => {
      frame = 0
      const height = rowHeight.peek()
      const first = Math.max(0, Math.floor((element.scrollTop - unfolded) / height) - MARGIN)
      const last = Math.ceil((element.scrollTop + element.clientHeight) / height) + MARGIN
      setRange((before) => (before.first === first && before.last === last ? before : { first, last }))
    }
    const onScroll = () => {
      if (frame === 0) frame = requestAnimationFrame(measure)
    }
    measure()
    element.addEventListener('scroll', onScroll, { passive: true })
    addEventListener('resize', onScroll)
    return () => {
      cancelAnimationFrame(frame)
      element.removeEventListener('scroll', onScroll)
      removeEventListener('resize', onScroll)
    }
  }, [box, length > 0, unfolded])
  return { first: Math.min(range.first, length), last: Math.min(range.last, length) }
}

const PAGE_ROWS = 200
const REFRESH_AT_MOST_EVERY_MILLIS = 1500

interface RowsOptions {
  readonly view: TaskView
  readonly at: TaskRoute
  /** The scrolling element. */
  readonly box: RefObject<HTMLElement | null>
  /** The height of the unfolded details. */
  readonly unfolded: number
}

interface PartitionRows {
  readonly pages: PartitionPages
  /** The visible rows; `last` is exclusive. */
  readonly first: number
  readonly last: number
  /** Whether some rows could not be loaded. */
  readonly failed: boolean
}

/**
 * The partitions that match a filter. They are loaded when they become visible, and kept up to date while
 * they are.
 */
export function usePartitionRows({ view, at, box, unfolded }: RowsOptions): PartitionRows {
  const [pages] = useState(() => pagesOf(at))
  const [, redraw] = useState(0)
  const [failed, setFailed] = useState(false)
  const { first, last } = useVisibleRows(box, pages.length, unfolded)
  const inView = useRef({ first, last })
  inView.current = { first, last }
  const refreshedAt = useRef(0)
  const look = Object.values(view.partitions).join()

  useEffect(() => {
    let isCurrent = true
    const bring = async () => {
      try {
        if (pages.hasMore && last + PAGE_ROWS / 2 > pages.length) await pages.grow()
        if (pages.lacks(first, last)) await pages.refresh(first, last)
        setFailed(false)
      } catch {
        setFailed(true)
      }
      if (isCurrent) redraw((count) => count + 1)
    }
    void bring()
    return () => {
      isCurrent = false
    }
  }, [pages, first, last, pages.length])

  // Visible rows are refreshed when the task changes. Others are loaded when they become visible.
  useEffect(() => {
    if (pages.length === 0) return
    const wait = Math.max(0, refreshedAt.current + REFRESH_AT_MOST_EVERY_MILLIS - Date.now())
    const waiting = setTimeout(() => {
      refreshedAt.current = Date.now()
      // Use the rows that are visible now, not those at the start of the wait.
      pages.refresh(inView.current.first, inView.current.last).then(
        () => redraw((count) => count + 1),
        () => {},
      )
    }, wait)
    return () => clearTimeout(waiting)
  }, [look])

  return { pages, first, last, failed }
}

function pagesOf({ taskId, ...filter }: TaskRoute): PartitionPages {
  return new PartitionPages(async (cursor) => {
    const { partitions, next } = await client.peek().partitions(taskId, {
      limit: PAGE_ROWS,
      ...queryOf(taskId, filter),
      ...(cursor === null ? {} : { cursor }),
    })
    return { rows: partitions, next }
  })
}

function queryOf(taskId: string, filter: PartitionFilter): PartitionsOptions {
  const { state, level, indexes, name, holder, reason } = filter
  return {
    // What is finished is of little interest, and there is most of it.
    order: 'unfinished',
    ...(state === null ? {} : { state }),
    ...(level === null ? {} : { level }),
    ...(indexes === null ? {} : { indexes }),
    ...(name === '' ? {} : { name: beginningOf(taskId, name) }),
    ...(holder === '' ? {} : { holder }),
    ...(reason === '' ? {} : { reason }),
  }
}

/** Whoever looks at a task need not type its name: `0-17` is `<taskId>-0-17*`. */
function beginningOf(taskId: string, name: string): string {
  const start = `${taskId}-`
  const isWhole = name.startsWith(start) || start.startsWith(name)
  return `${isWhole ? name : start + name}*`
}

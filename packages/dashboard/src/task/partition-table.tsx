import type { TaskView } from '@baton/protocol'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Empty } from '../parts/empty.tsx'
import { Scrolling } from '../parts/scrolling.tsx'
import type { Route } from '../route.ts'
import { client } from '../service/connection.ts'
import { PartitionLine } from './partition-line.tsx'
import { PartitionPages } from './partition-pages.ts'
import { matchingCount } from './partition-panel.tsx'
import { rowHeight } from './row-height.ts'
import { useVisibleRows } from './visible-rows.ts'

const PAGE_ROWS = 200
const REFRESH_AT_MOST_EVERY_MILLIS = 1500

interface TableProps {
  readonly view: TaskView
  readonly at: Extract<Route, { page: 'task' }>
  readonly refresh: () => void
}

/** A table of any length: only the rows on the screen exist, between two empty ones as high as all the others. */
export function PartitionTable({ view, at, refresh }: TableProps) {
  const { taskId, state, level } = at
  const [pages] = useState(() => pagesOf(at))
  const [, redraw] = useState(0)
  const [failed, setFailed] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const { first, last } = useVisibleRows(box, pages.length)
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

  // What is on the screen follows the task; what is not is read when it comes into view.
  useEffect(() => {
    if (pages.length === 0) return
    const wait = Math.max(0, refreshedAt.current + REFRESH_AT_MOST_EVERY_MILLIS - Date.now())
    const waiting = setTimeout(() => {
      refreshedAt.current = Date.now()
      pages.refresh(first, last).then(
        () => redraw((count) => count + 1),
        () => {},
      )
    }, wait)
    return () => clearTimeout(waiting)
  }, [look])

  if (pages.length === 0 && !pages.hasMore) return <Empty title={emptyWords(view, state, level)} />
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, offset) => first + offset)
  return (
    <Scrolling label="Rows of partitions" kind="partitions" box={box}>
      <table aria-rowcount={matchingCount(view, at) + 1}>
        <thead>
          <tr>
            <th scope="col">Partition</th>
            <th scope="col">State</th>
            <th scope="col" class="number wide-only">
              Records
            </th>
            <th scope="col" class="number wide-only">
              Attempts
            </th>
            <th scope="col" class="roomy-only">
              Holder
            </th>
            <th scope="col">
              <span class="wide-only">What happened</span>
              <span class="visually-hidden narrow-only">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <Spacer height={first * rowHeight.value} />
          {shown.map((row) => (
            <PartitionLine
              key={row}
              position={row}
              partition={pages.row(row)}
              taskId={taskId}
              refresh={refresh}
            />
          ))}
          <Spacer height={(pages.length - last) * rowHeight.value} />
        </tbody>
      </table>
      {failed ? <p class="quiet">The rest could not be read; scrolling tries again.</p> : null}
    </Scrolling>
  )
}

/** Stands for the rows above or below, and is as high as they are. */
function Spacer({ height }: { height: number }) {
  return (
    <tr class="spacer">
      <td style={{ height: `${height}px` }} />
    </tr>
  )
}

function pagesOf({ taskId, state, level }: TableProps['at']): PartitionPages {
  return new PartitionPages(async (cursor) => {
    const { partitions, next } = await client.peek().partitions(taskId, {
      limit: PAGE_ROWS,
      ...(state === null ? {} : { state }),
      ...(level === null ? {} : { level }),
      ...(cursor === null ? {} : { cursor }),
    })
    return { rows: partitions, next }
  })
}

function emptyWords(view: TaskView, state: string | null, level: number | null): string {
  if (view.purgedAt !== null) return 'The partitions of this task were forgotten after their retention.'
  const where = level === null ? '' : ` on level ${level}`
  return state === null ? `There are no partitions${where}.` : `No partition${where} is ${state}.`
}

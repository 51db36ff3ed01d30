import type { TaskView } from '@baton/protocol'
import { Fragment } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Empty } from '../parts/empty.tsx'
import { Scrolling } from '../parts/scrolling.tsx'
import type { Route } from '../route.ts'
import { client } from '../service/connection.ts'
import { matchingCount } from './matching-count.ts'
import { PartitionLine } from './partition-line.tsx'
import { PartitionPages } from './partition-pages.ts'
import { ReasonRow } from './reason-row.tsx'
import { rowHeight } from './row-height.ts'
import { useVisibleRows } from './visible-rows.ts'

const PAGE_ROWS = 200
const REFRESH_AT_MOST_EVERY_MILLIS = 1500

interface TableProps {
  readonly view: TaskView
  readonly at: Extract<Route, { page: 'task' }>
  readonly refresh: () => void
}

/** The row whose reason is shown in full. */
interface Unfolded {
  readonly at: number
  readonly name: string
  readonly height: number
}

/** A table of any length: only the rows on the screen exist, between two empty ones as high as all the others. */
export function PartitionTable({ view, at, refresh }: TableProps) {
  const { taskId, state, level } = at
  const [pages] = useState(() => pagesOf(at))
  const [, redraw] = useState(0)
  const [failed, setFailed] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const [unfolded, setUnfolded] = useState<Unfolded | null>(null)
  const detailHeight = unfolded?.height ?? 0
  const { first, last } = useVisibleRows(box, pages.length, detailHeight)
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

  // What is on the screen follows the task; what is not is read when it comes into view.
  useEffect(() => {
    if (pages.length === 0) return
    const wait = Math.max(0, refreshedAt.current + REFRESH_AT_MOST_EVERY_MILLIS - Date.now())
    const waiting = setTimeout(() => {
      refreshedAt.current = Date.now()
      // Not those that were looked at when the wait began.
      pages.refresh(inView.current.first, inView.current.last).then(
        () => redraw((count) => count + 1),
        () => {},
      )
    }, wait)
    return () => clearTimeout(waiting)
  }, [look])

  if (pages.length === 0 && !pages.hasMore) return <Empty title={emptyWords(view, state, level)} />
  // Rows may have moved since: what is unfolded belongs to a partition and not to a place.
  const isUnfolded = (row: number) => unfolded?.at === row && pages.row(row)?.partition_name === unfolded.name
  const toggle = (row: number) => {
    const name = pages.row(row)?.partition_name
    setUnfolded(name === undefined || isUnfolded(row) ? null : { at: row, name, height: 0 })
  }
  const above = unfolded !== null && unfolded.at < first ? detailHeight : 0
  const below = unfolded !== null && unfolded.at >= last ? detailHeight : 0
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
          <Spacer height={first * rowHeight.value + above} />
          {shown.map((row) => {
            const partition = pages.row(row)
            const detailId = `reason-${row}`
            const reason = isUnfolded(row) ? (partition?.lastReason ?? null) : null
            return (
              <Fragment key={row}>
                <PartitionLine
                  position={row}
                  partition={partition}
                  taskId={taskId}
                  unfolding={{ detailId, isOpen: reason !== null, toggle: () => toggle(row) }}
                  refresh={refresh}
                />
                {reason === null ? null : (
                  <ReasonRow
                    id={detailId}
                    text={reason}
                    measured={(height) =>
                      setUnfolded((now) => (now === null || now.height === height ? now : { ...now, height }))
                    }
                  />
                )}
              </Fragment>
            )
          })}
          <Spacer height={(pages.length - last) * rowHeight.value + below} />
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

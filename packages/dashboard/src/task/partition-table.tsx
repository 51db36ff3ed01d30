import type { TaskView } from '@baton/protocol'
import { Fragment } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { refine } from '../current-route.ts'
import { CopyAs } from '../parts/copy.tsx'
import { Choice, Search } from '../parts/filters.tsx'
import { counted } from '../parts/format.ts'
import { Empty, Scrolling } from '../parts/panel.tsx'
import { partitionStatesAsShown, partitionStateWords } from '../parts/states.tsx'
import { Head } from '../parts/table.tsx'
import { everyPartition, hrefOf, type TaskRoute, withQuery } from '../route.ts'
import { failureWords } from './failures.tsx'
import { PartitionDetail } from './partition-detail.tsx'
import { columnCount, PartitionLine } from './partition-line.tsx'
import { matchingCount, rowHeight, usePartitionRows } from './partition-rows.ts'

interface PanelProps {
  readonly view: TaskView
  readonly at: TaskRoute
  readonly refresh: () => void
}

/** The partitions of a task, filtered by state and level. */
export function PartitionPanel({ view, at, refresh }: PanelProps) {
  const { state, level } = at
  return (
    <section class="panel" aria-labelledby="partitions-title">
      <header class="panel-head">
        <h2 id="partitions-title">Partitions</h2>
        <p class="muted">{matchingInWords(view, at)}</p>
        <div class="filters">
          <Search
            label="Search partitions by name"
            placeholder="Search by name"
            value={at.name}
            search={(name) => refine({ ...at, ...everyPartition, name })}
          />
          <Search
            label="Partitions held by this worker"
            placeholder="Held by"
            isExact
            value={at.holder}
            search={(holder) => refine({ ...at, ...everyPartition, holder })}
          />
          <Choice
            label="State"
            none="Every state"
            value={state}
            options={partitionStatesAsShown.map((word) => [word, partitionStateWords[word]])}
            choose={(chosen) => refine({ ...at, state: chosen })}
          />
          <Choice
            label="Level"
            none="Every level"
            value={level === null ? null : String(level)}
            options={view.levels.map((one) => [String(one.level), `Level ${one.level}`])}
            choose={(chosen) =>
              refine({ ...at, indexes: null, level: chosen === null ? null : Number(chosen) })
            }
          />
          {view.failures.length === 0 ? null : (
            <Choice
              label="Reason"
              none="Every reason"
              value={at.reason}
              options={view.failures.map((failure) => [failure.key, failureWords(failure)])}
              choose={(reason) => refine({ ...at, ...everyPartition, reason: reason ?? '' })}
            />
          )}
          <CopyAs path={pathOf(at)} />
        </div>
      </header>
      <Chips at={at} />
      <PartitionTable key={hrefOf({ ...at, span: null })} view={view} at={at} refresh={refresh} />
    </section>
  )
}

/** The list as the service gives it. */
function pathOf({ taskId, state, level, indexes, name, holder, reason }: TaskRoute): string {
  const range = indexes === null ? null : `${indexes.first}-${indexes.last}`
  const prefix = name === '' || name.endsWith('*') ? name : `${name}*`
  return withQuery(`tasks/${encodeURIComponent(taskId)}/partitions`, {
    state,
    level,
    indexes: range,
    name: prefix,
    holder,
    reason,
  })
}

function matchingInWords(view: TaskView, at: TaskRoute): string {
  const count = matchingCount(view, at)
  return count === null ? '' : counted(count, 'partition')
}

/** What is listed besides state and level, each with a way back. */
function Chips({ at }: { at: TaskRoute }) {
  const { indexes, holder, reason } = at
  const chips = [
    ...(indexes === null
      ? []
      : [
          {
            words:
              indexes.first === indexes.last
                ? `index ${indexes.first}`
                : `indexes ${indexes.first}–${indexes.last}`,
            without: { indexes: null },
          },
        ]),
    ...(holder === '' ? [] : [{ words: `held by ${holder}`, without: { holder: '' } }]),
    ...(reason === '' ? [] : [{ words: `reason: ${reason}`, without: { reason: '' } }]),
  ]
  if (chips.length === 0) return null
  return (
    <p class="chips">
      {chips.map(({ words, without }) => (
        <a
          key={words}
          class="chip"
          href={hrefOf({ ...at, ...without })}
          aria-label={`Remove the filter ${words}`}
        >
          <span class="cut">{words}</span> <span aria-hidden="true">×</span>
        </a>
      ))}
    </p>
  )
}

interface TableProps {
  readonly view: TaskView
  readonly at: TaskRoute
  readonly refresh: () => void
}

/** The row whose reason and attempts are shown in full. */
interface Unfolded {
  readonly at: number
  readonly name: string
  readonly height: number
}

/**
 * A virtual table of any length: only visible rows are rendered, between two spacers with the height of the
 * others.
 */
function PartitionTable({ view, at, refresh }: TableProps) {
  const { taskId } = at
  const box = useRef<HTMLDivElement>(null)
  const [unfolded, setUnfolded] = useState<Unfolded | null>(null)
  const detailHeight = unfolded?.height ?? 0
  const { pages, first, last, failed } = usePartitionRows({ view, at, box, unfolded: detailHeight })

  if (pages.length === 0 && !pages.hasMore) return <Empty title={emptyWords(view, at)} />
  // Rows may have moved since, so the details belong to a partition and not to a position.
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
      <table
        class={view.partitions.parked === 0 ? 'no-acts' : undefined}
        aria-rowcount={(matchingCount(view, at) ?? -2) + 1}
      >
        <Head
          columns={[
            'Partition',
            'State',
            ['Records', 'number wide-only'],
            ['Attempts', 'number wide-only'],
            ['Holder', 'roomy-only'],
            [
              <>
                <span class="wide-only">What happened</span>
                <span class="visually-hidden narrow-only">Action</span>
              </>,
              '',
            ],
          ]}
        />
        <tbody>
          <Spacer height={first * rowHeight.value + above} />
          {shown.map((row) => {
            const partition = pages.row(row)
            const detailId = `reason-${row}`
            const detail = partition !== undefined && isUnfolded(row) ? partition : null
            return (
              <Fragment key={row}>
                <PartitionLine
                  position={row}
                  partition={partition}
                  taskId={taskId}
                  unfolding={{ detailId, isOpen: detail !== null, toggle: () => toggle(row) }}
                  refresh={refresh}
                />
                {detail === null ? null : (
                  <PartitionDetail
                    id={detailId}
                    columns={columnCount.value}
                    refresh={refresh}
                    partition={detail}
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
      {failed ? <p class="quiet">The rest could not be read. Scroll to try again.</p> : null}
    </Scrolling>
  )
}

/** Takes the height of the rows above or below. */
function Spacer({ height }: { height: number }) {
  return (
    <tr class="spacer">
      <td style={{ height: `${height}px` }} />
    </tr>
  )
}

function emptyWords(view: TaskView, { state, level, indexes, name, holder, reason }: TaskRoute): string {
  if (view.purgedAt !== null) return 'Retention deleted the partitions of this task.'
  if (indexes !== null || name + holder + reason !== '') return 'No partition matches.'
  const where = level === null ? '' : ` on level ${level}`
  return state === null ? `There are no partitions${where}.` : `No partition${where} is ${state}.`
}

import type { PartitionRow } from '@baton/protocol'
import { signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { useControl } from '../parts/control.tsx'
import { compact, exact, inColumn, lastLine, progressWords } from '../parts/format.ts'
import { Ago, Ahead, LeaseEnd } from '../parts/moment.tsx'
import { PartitionBadge, partitionStateMeanings } from '../parts/states.tsx'
import { Name } from '../parts/table.tsx'
import { instanceHref } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'

/**
 * For cells that span all columns: columns hidden in a narrow window must not be counted. Same limits as in
 * the style sheet.
 */
const narrow = matchMedia('(max-width: 640px)')
const roomy = matchMedia('(min-width: 1001px)')

const count = () => (narrow.matches ? 3 : roomy.matches ? 6 : 5)

export const columnCount = signal(count())

for (const query of [narrow, roomy]) {
  query.addEventListener('change', () => {
    columnCount.value = count()
  })
}

interface Unfolding {
  /** The id of the row with the details. */
  readonly detailId: string
  readonly isOpen: boolean
  readonly toggle: () => void
}

interface LineProps {
  readonly position: number
  /** Undefined while its page is being loaded. */
  readonly partition: PartitionRow | undefined
  readonly taskId: string
  readonly unfolding: Unfolding
  readonly refresh: () => void
}

export function PartitionLine({ position, partition, taskId, unfolding, refresh }: LineProps) {
  if (partition === undefined) {
    return (
      <tr aria-rowindex={position + 2} class="pending">
        <td colSpan={columnCount.value}>
          <span class="visually-hidden">loading</span>
        </td>
      </tr>
    )
  }
  const { partition_name, state, record_count, reportedRecords, attempts, holder, settledAt } = partition
  const isMismatched = reportedRecords !== null && reportedRecords !== record_count
  return (
    <tr aria-rowindex={position + 2}>
      <th scope="row" class="cut" title={partition_name}>
        <button
          type="button"
          class="reason"
          aria-expanded={unfolding.isOpen}
          aria-controls={unfolding.isOpen ? unfolding.detailId : undefined}
          onClick={unfolding.toggle}
        >
          <Name text={partition_name} />
        </button>
        <span class="under cut narrow-only">
          {/* There is space for one of the two, and the reason is more useful. */}
          {state === 'parked' && partition.lastReason !== null ? null : `${compact(record_count)} records · `}
          {state === 'done' && settledAt !== null ? (
            <Ago at={settledAt} />
          ) : (
            <Happened partition={partition} />
          )}
        </span>
      </th>
      <td title={partitionStateMeanings[state]}>
        <PartitionBadge state={state} />
      </td>
      <td
        class="number cut wide-only"
        title={`${exact(record_count)}${isMismatched ? `, the worker reported ${exact(reportedRecords)}` : ''}`}
      >
        {inColumn(record_count)}
        {isMismatched ? <span class="mismatch"> ≠ {inColumn(reportedRecords)}</span> : null}
      </td>
      <td class="number wide-only">{attempts}</td>
      <td class="cut roomy-only" title={holder ?? undefined}>
        {holder === null ? '–' : <Name text={holder} href={instanceHref(holder)} />}
      </td>
      <td>
        <div class="happened">
          <span class="cut wide-only">
            <Happened partition={partition} />
          </span>
          {state === 'parked' && mayControl.value ? (
            <RetryButton taskId={taskId} name={partition_name} refresh={refresh} />
          ) : null}
        </div>
      </td>
    </tr>
  )
}

function Happened({ partition }: { partition: PartitionRow }) {
  const { state, leaseExpiresAt, readyAt, settledAt, lastReason, calledBackAt } = partition
  const { progress, record_count } = partition
  const reason = lastReason === null ? null : <span class="reason-line">{lastLine(lastReason)}</span>
  const words = (() => {
    if (state === 'done' && settledAt !== null) return <>done {<Ago at={settledAt} />}</>
    if (state === 'leased' && leaseExpiresAt !== null)
      return (
        <>
          {progress === undefined ? '' : `${progressWords(progress, record_count)} · `}
          <LeaseEnd at={leaseExpiresAt} />
        </>
      )
    if (state === 'delayed' && readyAt !== null) return <>ready {<Ahead at={readyAt} />}</>
    return reason === null ? <>called back {<Ago at={calledBackAt} />}</> : null
  })()
  return (
    <>
      {words}
      {words !== null && reason !== null && state !== 'done' ? ' · ' : ''}
      {state === 'done' ? null : reason}
    </>
  )
}

function RetryButton({ taskId, name, refresh }: { taskId: string; name: string; refresh: () => void }) {
  const { busy, request } = useControl(refresh)
  const button = useRef<HTMLButtonElement>(null)
  const retry = async () => {
    const isDone = await request(
      () => client.peek().retry(taskId, { partitions: [name] }),
      () => `${name} retried`,
    )
    // The button disappears when the row changes its state, so focus the table instead.
    if (isDone) button.current?.closest('section')?.focus({ preventScroll: true })
  }
  return (
    <button
      ref={button}
      type="button"
      class="button small"
      aria-disabled={busy}
      aria-label={`Retry ${name}`}
      onClick={() => void retry()}
    >
      Retry
    </button>
  )
}

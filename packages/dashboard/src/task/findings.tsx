import type { ReportedRecords, Straggler, TaskView, WaitingFor } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Confirmation, type ControlConfirmationProps, useControl } from '../parts/control.tsx'
import { brief, counted, exact } from '../parts/format.ts'
import { Ago, LeaseEnd, Since } from '../parts/moment.tsx'
import { Finding, focusContent, Scrolling } from '../parts/panel.tsx'
import { Head, Name } from '../parts/table.tsx'
import { instanceHref, partitionHref } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'
import { Failures, ParkedReasons } from './failures.tsx'
import { TableFindings } from './table-findings.tsx'

interface SkipProps extends ControlConfirmationProps {
  readonly waitingFor: WaitingFor
}

/** Opens the barrier in spite of parked partitions. Higher levels are then handed out without them. */
function SkipConfirmation({ view, waitingFor, busy, request, onClose }: SkipProps) {
  const { level, parked, unfinished } = waitingFor
  const [fault, setFault] = useState<string | null>(null)
  const skip = async () => {
    const isDone = await request(
      () => client.peek().skipParked(view.taskId),
      () => `Level ${level} no longer waits for parked partitions`,
      setFault,
    )
    if (!isDone) return
    onClose()
    // The finding disappears together with the focused button.
    focusContent()
  }
  return (
    <Confirmation
      title="Continue without the parked partitions?"
      action={`Skip ${counted(parked, 'partition')}`}
      busy={busy}
      fault={fault}
      onConfirm={() => void skip()}
      onClose={onClose}
    >
      <p>
        {unfinished > parked
          ? `Higher levels are handed out once the other ${counted(unfinished - parked, 'partition')} of level ${level} ${unfinished - parked === 1 ? 'is' : 'are'} finished.`
          : `Levels above ${level} are handed out at once.`}{' '}
        Parked partitions stay parked and can be retried later, but workers of higher levels will find them
        unfinished.
      </p>
    </Confirmation>
  )
}

/** Overdue partitions, their holders, and the end of their leases. */
function Stragglers({ stragglers }: { stragglers: readonly Straggler[] }) {
  return (
    <ul class="failures" aria-label="Overdue partitions">
      {stragglers.map(({ partition_name, holder, startedAt, leaseExpiresAt, expectedSeconds, progress }) => (
        <li key={partition_name}>
          <a href={partitionHref(partition_name)}>
            <strong>{partition_name}</strong>
          </a>
          {holder === null ? null : (
            <>
              {' '}
              with <a href={instanceHref(holder)}>{holder}</a>
            </>
          )}
          , began <Ago at={startedAt} />, <LeaseEnd at={leaseExpiresAt} />
          {progress?.records === undefined ? '' : `, ${exact(progress.records)} records so far`}
          <span class="muted">, others of this size take {brief(expectedSeconds)}</span>
        </li>
      ))}
    </ul>
  )
}

/** What an operator should know first, each with a possible action. */
export function Findings({ view, refresh }: { view: TaskView; refresh: () => void }) {
  const {
    taskId,
    state,
    control,
    partitions,
    waitingFor,
    missingPartitions,
    expectedPartitions,
    purgedAt,
    reported,
  } = view
  const { busy, request } = useControl(refresh)
  const [isSkipping, setSkipping] = useState(false)
  const gapped = view.levels.filter(({ indexes }) => indexes.missing > 0)
  const canRetry = partitions.parked > 0 && state !== 'cancelled'
  const retry = async (send = () => client.peek().retry(taskId)) => {
    const isDone = await request(send, ({ changed }) => `${counted(changed, 'partition')} retried`)
    // The finding disappears together with the focused button.
    if (isDone) focusContent()
  }
  return (
    <div class="findings">
      {state === 'paused' ? (
        <Finding kind="warn" title="The task is paused">
          {control.paused === null ? (
            'Nothing of it is handed out.'
          ) : (
            <>
              {pausedBy(control.paused)} <Since at={control.paused.at} />
              {control.paused.because === null ? '' : `, because ${control.paused.because}`}. Nothing of it is
              handed out.
            </>
          )}
        </Finding>
      ) : null}
      <TableFindings view={view} />
      {canRetry ? (
        <Finding
          kind="alarm"
          title={`${counted(partitions.parked, 'partition is', 'partitions are')} parked`}
          action={
            mayControl.value ? (
              <button type="button" class="button primary" aria-disabled={busy} onClick={() => void retry()}>
                Retry all parked
              </button>
            ) : null
          }
        >
          {partitions.parked === 1 ? 'It has' : 'They have'} run out of attempts or failed without retry
          {state === 'stalled' ? ', and no other partition can continue' : ''}.
          <ParkedReasons view={view} busy={busy} retry={retry} />
        </Finding>
      ) : null}
      {view.stragglers.length === 0 ? null : (
        <Finding
          kind="warn"
          title={`${counted(view.stragglers.length, 'partition takes', 'partitions take')} much longer than others`}
        >
          <Stragglers stragglers={view.stragglers} />
        </Finding>
      )}
      {view.failures.length === 0 ? null : (
        <Finding kind="hint" title={`${counted(view.attemptsWasted, 'attempt')} failed or expired`}>
          <Failures view={view} />
        </Finding>
      )}
      {waitingFor === null ? null : (
        <Finding
          kind={waitingFor.parked > 0 ? 'warn' : 'hint'}
          title={`Levels above ${waitingFor.level} wait`}
          action={
            waitingFor.parked > 0 && mayControl.value ? (
              <button type="button" class="button" aria-disabled={busy} onClick={() => setSkipping(true)}>
                Skip parked…
              </button>
            ) : null
          }
        >
          The level barrier opens when level {waitingFor.level} is finished: {toGo(waitingFor)}.
        </Finding>
      )}
      {isSkipping && waitingFor !== null ? (
        <SkipConfirmation
          view={view}
          waitingFor={waitingFor}
          busy={busy}
          request={request}
          onClose={() => setSkipping(false)}
        />
      ) : null}
      {missingPartitions === null || missingPartitions === 0 ? null : (
        <Finding
          kind="warn"
          title={`${counted(missingPartitions, 'partition is', 'partitions are')} missing`}
        >
          {exact(expectedPartitions ?? 0)} were expected when the task was sealed; {exact(partitions.total)}{' '}
          were called back.
        </Finding>
      )}
      {gapped.length === 0 ? null : (
        <Finding kind="warn" title="There are gaps between the indexes">
          {gapped.slice(0, 5).map(({ level, indexes }) => (
            <span class="gap" key={level}>
              Level {level}: {gapsInWords(indexes.gaps)}
              {indexes.missing > 0 ? ` (${exact(indexes.missing)} missing)` : ''}
            </span>
          ))}
          {gapped.length > 5 ? `and on ${gapped.length - 5} further levels` : ''}
        </Finding>
      )}
      {reported.mismatched === 0 ? null : (
        <Finding
          kind="warn"
          title={`${counted(reported.mismatched, 'partition')} with a different number of records`}
        >
          <Mismatches reported={reported} />
        </Finding>
      )}
      {purgedAt === null ? null : (
        <Finding kind="hint" title="Its partitions were deleted">
          The retention period of the finished task has passed. The counts are kept.
        </Finding>
      )}
    </div>
  )
}

function toGo({ unfinished, parked }: WaitingFor): string {
  const words = `${counted(unfinished, 'partition')} to go`
  if (parked === 0) return words
  if (parked < unfinished) return `${words}, ${exact(parked)} of them parked`
  return `${words}, ${parked === 1 ? 'and it is parked' : 'all of them parked'}`
}

function gapsInWords(gaps: readonly { first: number; last: number }[]): string {
  return gaps
    .map(({ first, last }) => (first === last ? exact(first) : `${exact(first)}–${exact(last)}`))
    .join(', ')
}

/** The records declared by the producer and those reported by the worker, for each partition. */
function Mismatches({ reported }: { reported: ReportedRecords }) {
  const difference = reported.reported - reported.declared
  return (
    <details>
      <summary>
        Workers reported {counted(Math.abs(difference), 'record')} {difference < 0 ? 'fewer' : 'more'} than
        were declared
      </summary>
      <Scrolling label="Mismatches" kind="short">
        <table class="held">
          <Head
            columns={['Partition', ['Declared', 'number'], ['Reported', 'number'], ['Difference', 'number']]}
          />
          <tbody>
            {reported.mismatches.map(({ partition_name, declared, reported: said }) => (
              <tr key={partition_name}>
                <td>
                  <Name text={partition_name} />
                </td>
                <td class="number">{exact(declared)}</td>
                <td class="number">{exact(said)}</td>
                <td class="number">
                  {said > declared ? `+${exact(said - declared)}` : `−${exact(declared - said)}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolling>
      {reported.mismatched > reported.mismatches.length ? (
        <p class="quiet">The first {reported.mismatches.length} of them.</p>
      ) : null}
    </details>
  )
}

function pausedBy({ name, because }: NonNullable<TaskView['control']['paused']>): string {
  if (because !== null) return 'It paused itself'
  return name === null ? 'Someone without a token paused it' : `${name} paused it`
}

import type { Straggler, TaskView, WaitingFor } from '@baton/protocol'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Confirmation } from '../parts/confirmation.tsx'
import { focusContent } from '../parts/focus.ts'
import { Ago, LeaseEnd } from '../parts/moment.tsx'
import { counted, exact } from '../parts/numbers.ts'
import { brief } from '../parts/times.ts'
import { hrefOf, instanceHref } from '../route.ts'
import { client, mayOrder } from '../service/connection.ts'
import { type OrderConfirmationProps, useControl } from './control.ts'
import { Mismatches } from './mismatches.tsx'

interface SkipProps extends OrderConfirmationProps {
  readonly waitingFor: WaitingFor
}

/** Opens the barrier in spite of parked partitions. Higher levels are then handed out without them. */
function SkipConfirmation({ view, waitingFor, busy, order, onClose }: SkipProps) {
  const { level, parked, unfinished } = waitingFor
  const [fault, setFault] = useState<string | null>(null)
  const skip = async () => {
    const isDone = await order(
      () => client.peek().skipParked(view.taskId),
      () => `Level ${level} no longer waits for what is parked`,
      setFault,
    )
    if (!isDone) return
    onClose()
    // The finding disappears together with the focused button.
    focusContent()
  }
  return (
    <Confirmation
      title="Go on without what is parked?"
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
        What is parked stays parked and can be retried later, but workers will not find it done.
      </p>
    </Confirmation>
  )
}

const LISTED = 5

/** Reasons of unsuccessful attempts, most frequent first. */
function Failures({ view: { failures, failuresOmitted } }: { view: TaskView }) {
  const listed = failures.slice(0, LISTED)
  const rest = failures.slice(LISTED)
  const omitted = rest.reduce((sum, { count }) => sum + count, failuresOmitted)
  return (
    <ul class="failures" aria-label="Failures by reason">
      {listed.map(({ outcome, reason, count, lastAt }) => (
        <li key={`${outcome} ${reason}`}>
          <strong>{exact(count)}</strong> × {reason ?? 'without a reason'}{' '}
          <span class="muted">
            last <Ago at={lastAt} />
          </span>
        </li>
      ))}
      {omitted === 0 ? null : (
        <li>
          <strong>{exact(omitted)}</strong> × other reasons
        </li>
      )}
    </ul>
  )
}

/** Overdue partitions, their holders, and the end of their leases. */
function Stragglers({ stragglers }: { stragglers: readonly Straggler[] }) {
  return (
    <ul class="failures" aria-label="Overdue partitions">
      {stragglers.map(({ partition_name, holder, startedAt, leaseExpiresAt, expectedSeconds }) => (
        <li key={partition_name}>
          <strong>{partition_name}</strong>
          {holder === null ? null : (
            <>
              {' '}
              with <a href={instanceHref(holder)}>{holder}</a>
            </>
          )}
          , begun <Ago at={startedAt} />, <LeaseEnd at={leaseExpiresAt} />{' '}
          <span class="muted">others of its size take {brief(expectedSeconds)}</span>
        </li>
      ))}
    </ul>
  )
}

/** What an operator should know first, each with a possible action. */
export function Findings({ view, refresh }: { view: TaskView; refresh: () => void }) {
  const { taskId, state, partitions, waitingFor, missingPartitions, expectedPartitions, purgedAt, reported } =
    view
  const { busy, order } = useControl(refresh)
  const [isSkipping, setSkipping] = useState(false)
  const gapped = view.levels.filter(({ indexes }) => indexes.missing > 0)
  const canRetry = partitions.parked > 0 && state !== 'cancelled'
  const retryAll = async () => {
    const isDone = await order(
      () => client.peek().retry(taskId),
      ({ changed }) => `${counted(changed, 'partition')} got fresh attempts`,
    )
    // The finding disappears together with the focused button.
    if (isDone) focusContent()
  }
  return (
    <div class="findings">
      {canRetry ? (
        <Finding
          kind="alarm"
          title={`${counted(partitions.parked, 'partition is', 'partitions are')} parked`}
          action={
            mayOrder.value ? (
              <button
                type="button"
                class="button primary"
                aria-disabled={busy}
                onClick={() => void retryAll()}
              >
                Retry all parked
              </button>
            ) : null
          }
        >
          {partitions.parked === 1 ? 'It has' : 'They have'} run out of attempts or been given up by a worker
          {state === 'stalled' ? ', and nothing else can move' : ''}.{' '}
          <a href={hrefOf({ page: 'task', taskId, state: 'parked', level: null })}>See why</a>
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
            waitingFor.parked > 0 && mayOrder.value ? (
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
          order={order}
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
          title={`${counted(reported.mismatched, 'partition')} with another number of records`}
        >
          <Mismatches reported={reported} />
        </Finding>
      )}
      {purgedAt === null ? null : (
        <Finding kind="hint" title="Its partitions were forgotten">
          The task finished longer ago than partitions are kept; the numbers stay.
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

interface FindingProps {
  readonly kind: 'alarm' | 'warn' | 'hint'
  readonly title: string
  readonly action?: ComponentChildren
  readonly children: ComponentChildren
}

function Finding({ kind, title, action, children }: FindingProps) {
  return (
    <section class={`finding ${kind}`} aria-label={title}>
      <div>
        <p class="finding-title">{title}</p>
        <div class="finding-text">{children}</div>
      </div>
      {action}
    </section>
  )
}

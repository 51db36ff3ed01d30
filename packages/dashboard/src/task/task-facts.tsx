import type { TaskView } from '@baton/protocol'
import { brief, compact, counted, duration, exact, percent, perSecond } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { Fact } from '../parts/panel.tsx'
import { measureOf } from '../parts/states.tsx'
import { isAway } from '../service/live.ts'

const TABLES_NAMED = 3
const NAMES_SHOWN = 3

/** Progress, pace and remaining time of a task, and its settings. */
export function TaskFacts({ view }: { view: TaskView }) {
  const counts = measureOf(view)
  const unit = counts === view.records ? 'records' : 'partitions'
  const tables = view.computeTables
  return (
    <dl class="facts">
      <Fact name="Done" value={percent(counts.done, counts.total)}>
        {compact(counts.done)} of {compact(counts.total)} {unit}
      </Fact>
      <Fact name="Partitions" value={exact(view.partitions.total)}>
        {exact(view.partitions.done)} done in {counted(view.levels.length + view.levelsOmitted, 'level')}
      </Fact>
      {view.finishedAt === null ? <ComingFacts view={view} /> : <EndFacts view={view} at={view.finishedAt} />}
      <Fact name="First call-back" value={<Ago at={view.firstCallBackAt} />}>
        last <Ago at={view.lastCallBackAt} />
        {view.calledBackBy.length === 0 ? null : `, by ${namesOf(view.calledBackBy)}`}
      </Fact>
      <Fact name="Compute table" value={tables[0] ?? '–'} small>
        {tables.length > 1
          ? `and ${tables.slice(1, TABLES_NAMED).join(', ')}${tables.length > TABLES_NAMED ? ', …' : ''} · `
          : ''}
        {natureOf(view)}
      </Fact>
    </dl>
  )
}

function namesOf(names: readonly string[]): string {
  const others = names.length - NAMES_SHOWN
  return `${names.slice(0, NAMES_SHOWN).join(', ')}${others > 0 ? ` and ${counted(others, 'other')}` : ''}`
}

/** For a task in progress: pace and remaining time. */
function ComingFacts({ view }: { view: TaskView }) {
  if (isAway.value) {
    return (
      <>
        <Fact name="Records per second" value="–">
          not connected
        </Fact>
        <Fact name="Done in" value="–">
          not connected
        </Fact>
      </>
    )
  }
  const eta = waitsForOperator(view) ? null : view.etaSeconds
  return (
    <>
      <Fact name="Records per second" value={perSecond(view.recordsPerSecond)}>
        {view.recordsPerSecond === null ? 'nothing was done recently' : 'over the last minute'}
      </Fact>
      {view.attemptSeconds === null ? null : (
        <Fact name="Duration of an attempt" value={brief(view.attemptSeconds.median)}>
          one in 20 over {brief(view.attemptSeconds.p95)}
        </Fact>
      )}
      <Fact
        name={eta !== null && view.partitions.parked > 0 ? 'The rest done in' : 'Done in'}
        value={eta === null ? '–' : duration(eta)}
      >
        {etaNote(view, eta)}
      </Fact>
    </>
  )
}

/** For a finished task: how long it took, and its mean pace. */
function EndFacts({ view, at }: { view: TaskView; at: string }) {
  const seconds = (Date.parse(at) - Date.parse(view.firstCallBackAt)) / 1000
  // No mean for a reopened task, because it was idle for an unknown time.
  const hasMean = view.state === 'done' && view.generation === 1 && view.records.done > 0
  return (
    <>
      {hasMean ? (
        <Fact name="Records per second" value={perSecond(view.records.done / Math.max(1, seconds))}>
          from first to last, on average
        </Fact>
      ) : null}
      <Fact name="Took" value={duration(seconds)}>
        finished <Ago at={at} />
      </Fact>
    </>
  )
}

/**
 * Whether the barrier is closed because of parked partitions. More partitions than the parked ones then wait
 * for an operator.
 */
function waitsForOperator({ waitingFor }: TaskView): boolean {
  return waitingFor !== null && waitingFor.parked > 0
}

function etaNote(view: TaskView, eta: number | null): string {
  if (waitsForOperator(view)) return `higher levels wait for ${exact(view.waitingFor?.parked ?? 0)} parked`
  if (view.state !== 'open') return 'no progress'
  if (eta === null) return 'not known yet'
  const parked = view.partitions.parked > 0 ? `, except ${exact(view.partitions.parked)} parked` : ''
  return `${etaBasis[view.etaWaitsFor ?? 'pace']}${parked}`
}

const etaBasis = {
  pace: 'at the current pace',
  lease: 'waits for the end of a lease',
  'back-off': 'waits for the end of a back-off',
} as const

function natureOf({ sealed, levelBarrier, generation, settledByDelivery }: TaskView): string {
  return [
    sealed ? 'sealed' : 'not sealed',
    ...(levelBarrier ? ['level barrier'] : []),
    ...(settledByDelivery > 0 ? [`${exact(settledByDelivery)} settled by delivery`] : []),
    ...(generation > 1 ? [`reopened ${counted(generation - 1, 'time')}`] : []),
  ].join(' · ')
}

import type { TaskView } from '@baton/protocol'
import type { ComponentChildren } from 'preact'
import { Ago } from '../parts/moment.tsx'
import { compact, counted, exact, percent, perSecond } from '../parts/numbers.ts'
import { measureOf } from '../parts/split-bar.tsx'
import { duration } from '../parts/times.ts'

const TABLES_NAMED = 3

/** How far, how fast, how long still; and what the task is made of. */
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
      <Fact name="Records per second" value={perSecond(view.recordsPerSecond)}>
        {view.recordsPerSecond === null ? 'nothing was done lately' : 'over the last minute'}
      </Fact>
      {view.finishedAt === null ? (
        <Fact name="Done in" value={view.etaSeconds === null ? '–' : duration(view.etaSeconds)}>
          {etaNote(view)}
        </Fact>
      ) : (
        <Fact
          name="Took"
          value={duration((Date.parse(view.finishedAt) - Date.parse(view.firstCallBackAt)) / 1000)}
        >
          finished <Ago at={view.finishedAt} />
        </Fact>
      )}
      <Fact name="First call-back" value={<Ago at={view.firstCallBackAt} />}>
        last <Ago at={view.lastCallBackAt} />
      </Fact>
      <Fact name="Compute table" value={tables[0] ?? '–'} small>
        {tables.length > 1
          ? `and ${tables.slice(1, TABLES_NAMED).join(', ')}${tables.length > TABLES_NAMED ? ', …' : ''}`
          : ''}
        {natureOf(view)}
      </Fact>
    </dl>
  )
}

function etaNote({ state, etaSeconds }: TaskView): string {
  if (state !== 'open') return 'nothing moves now'
  return etaSeconds === null ? 'not known yet' : 'at the present pace'
}

function natureOf({ sealed, levelBarrier, generation }: TaskView): string {
  return [
    sealed ? 'sealed' : 'not sealed',
    ...(levelBarrier ? ['level barrier'] : []),
    ...(generation > 1 ? [`reopened ${counted(generation - 1, 'time')}`] : []),
  ].join(' · ')
}

interface FactProps {
  readonly name: string
  readonly value: ComponentChildren
  readonly small?: boolean
  readonly children: ComponentChildren
}

function Fact({ name, value, small, children }: FactProps) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd class={small ? 'fact-value small' : 'fact-value'}>{value}</dd>
      <dd class="fact-note">{children}</dd>
    </div>
  )
}

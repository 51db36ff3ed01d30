import type { TaskView } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { More } from '../parts/more.tsx'
import { client } from '../service/connection.ts'
import type { Order } from './control.ts'
import { ManifestLink } from './manifest-link.tsx'
import { RerunConfirmation } from './rerun-confirmation.tsx'

interface MoreProps {
  readonly view: TaskView
  readonly mayOrder: boolean
  readonly busy: boolean
  readonly order: Order
}

/** What is asked of a task now and then. */
export function MoreActions({ view, mayOrder, busy, order }: MoreProps) {
  const { taskId, state, levelBarrier } = view
  const [isAsking, setAsking] = useState(false)
  const setBarrier = () =>
    void order(
      () => client.peek().levelBarrier(taskId, !levelBarrier),
      () =>
        levelBarrier
          ? 'No level waits for another any more'
          : 'From now on a level waits until all lower ones are finished',
    )
  const offersBarrier = mayOrder && state !== 'cancelled'
  const offersRerun = mayOrder && canRerun(view)
  if (!offersBarrier && !offersRerun && view.purgedAt !== null) return null
  return (
    <>
      <More>
        {offersBarrier ? (
          <button type="button" aria-disabled={busy} onClick={setBarrier}>
            {levelBarrier ? 'End the level barrier' : 'Let levels wait for lower ones'}
          </button>
        ) : null}
        {offersRerun ? (
          <button type="button" onClick={() => setAsking(true)}>
            Run done partitions again…
          </button>
        ) : null}
        {view.purgedAt === null ? <ManifestLink taskId={taskId} /> : null}
      </More>
      {isAsking ? (
        <RerunConfirmation view={view} busy={busy} order={order} onClose={() => setAsking(false)} />
      ) : null}
    </>
  )
}

/** Of a sealed task that is done, done is final; what was forgotten cannot run again. */
function canRerun({ state, sealed, partitions, purgedAt }: TaskView): boolean {
  if (state === 'cancelled' || purgedAt !== null || partitions.done === 0) return false
  return !(sealed && state === 'done')
}

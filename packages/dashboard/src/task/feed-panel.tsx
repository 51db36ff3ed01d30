import type { FeedEntry, TaskView } from '@baton/protocol'
import { counted } from '../parts/format.ts'
import { Since } from '../parts/moment.tsx'
import { Scrolling } from '../parts/panel.tsx'
import { client } from '../service/connection.ts'
import { useReading } from '../service/reading.ts'

const SHOWN = 12

/** What happened to a task, newest first: called back, levels done, and what people changed. */
export function FeedPanel({ view }: { view: TaskView }) {
  const { taskId, state, levels, control, partitions } = view
  const finished = levels.filter(({ partitions: { total, done } }) => done === total).length
  const { loaded } = useReading(
    () => client.peek().feed(taskId),
    [taskId],
    `${state} ${finished} ${partitions.parked} ${partitions.total} ${JSON.stringify(control)}`,
  )
  if (loaded.kind !== 'there' || loaded.value.entries.length === 0) return null
  const { entries, complete } = loaded.value
  return (
    <section class="panel" aria-labelledby="feed-title">
      <header class="panel-head">
        <h2 id="feed-title">What happened</h2>
      </header>
      <Scrolling label="Events of the task" kind="feed-box">
        <ol class="feed" aria-label="What happened">
          {entries.slice(0, SHOWN).map((entry, place) => (
            <li key={`${entry.at} ${place}`}>
              <span class="muted">
                <Since at={entry.at} />
              </span>
              <span>
                {wordsOf(entry)}
                {entry.name === null ? null : (
                  <>
                    {' '}
                    by <strong>{entry.name}</strong>
                  </>
                )}
              </span>
            </li>
          ))}
        </ol>
      </Scrolling>
      {entries.length > SHOWN || !complete ? <p class="quiet">and what came before</p> : null}
    </section>
  )
}

const verbs: Readonly<Record<string, string>> = {
  'call-back': 'Called back for the first time',
  done: 'All partitions done',
  pause: 'Paused',
  resume: 'Resumed',
  cancel: 'Cancelled',
  seal: 'Sealed',
  retry: 'Retried',
  settings: 'Settings changed',
  release: 'Lease released',
  owner: 'Owner changed',
  'level-barrier': 'Level barrier changed',
  'skip-parked': 'Parked partitions skipped',
}

function wordsOf({ event, level, partitions, target, request }: FeedEntry): string {
  const { because } = request ?? {}
  if (event === 'pause' && typeof because === 'string') return `Paused itself, because ${because}`
  if (event === 'level-done') return `Level ${level ?? ''} done`
  const verb = verbs[event] ?? event
  if (target !== null) return `${verb}: ${target}`
  return event === 'retry' && partitions !== null ? `${verb} ${counted(partitions, 'partition')}` : verb
}

import type { TableView } from '@baton/protocol'
import { counted, duration } from '../parts/format.ts'
import { Finding } from '../parts/panel.tsx'
import { hrefOf, tablesRoute } from '../route.ts'
import { client } from '../service/connection.ts'
import { load, now, usePolled } from '../service/live.ts'
import { tasks } from '../service/tasks.ts'

const READ_EVERY_MILLIS = 10_000
const TABLES_READ = 500
const TABLES_NAMED = 3
/** Workers ask at least once a minute, also while they wait. */
const UNASKED_MILLIS = 120_000

/** Partitions could be handed out, but no worker has asked for this table for some time. */
export function isUnasked(view: TableView): boolean {
  const { waiting, leases, settings, lastAskedAt } = view
  if (waiting.partitions === 0 || settings.paused || areTasksPaused(view)) return false
  // After a change of leader nobody has asked yet; leases show that workers take it.
  if (lastAskedAt === null) return leases === 0
  return now.value - Date.parse(lastAskedAt) > UNASKED_MILLIS
}

/** As far as the page knows its tasks. */
const areTasksPaused = ({ tasks: count, taskIds }: TableView): boolean =>
  count === taskIds.length && taskIds.every((taskId) => tasks.value.get(taskId)?.state === 'paused')

export const unaskedWords = ({ lastAskedAt }: TableView): string =>
  lastAskedAt === null
    ? 'no worker has asked for it yet'
    : `no worker has asked for it for ${duration((now.value - Date.parse(lastAskedAt)) / 1000)}`

export const isAtLimit = ({ leases, settings: { maxLeases } }: TableView): boolean =>
  maxLeases !== null && leases >= maxLeases

/** Ready work that nobody asks for, by table. */
export function UnaskedTables() {
  const { loaded } = usePolled(
    () => load(() => client.peek().tables({ limit: TABLES_READ })),
    READ_EVERY_MILLIS,
  )
  if (loaded.kind !== 'there') return null
  const unasked = loaded.value.tables.filter((table) => isUnasked(table))
  if (unasked.length === 0) return null
  return (
    <div class="findings">
      <Finding
        kind="warn"
        title="Work waits that no worker asks for"
        action={
          <a class="button" href={hrefOf(tablesRoute)}>
            See tables
          </a>
        }
      >
        {unasked.slice(0, TABLES_NAMED).map((one) => (
          <span class="gap" key={one.table}>
            <strong>{one.table}</strong>: {counted(one.waiting.partitions, 'partition')} waiting;{' '}
            {unaskedWords(one)}
          </span>
        ))}
        {unasked.length > TABLES_NAMED ? `and ${unasked.length - TABLES_NAMED} other tables` : ''}
      </Finding>
    </div>
  )
}

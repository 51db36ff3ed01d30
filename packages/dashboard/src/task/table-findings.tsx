import type { TableView, TaskView } from '@baton/protocol'
import { counted, exact } from '../parts/format.ts'
import { Finding } from '../parts/panel.tsx'
import { hrefOf, tablesRoute } from '../route.ts'
import { client } from '../service/connection.ts'
import { load, usePolled } from '../service/live.ts'
import { isAtLimit, isUnasked, unaskedWords } from '../tables/unasked.tsx'

const READ_EVERY_MILLIS = 5000
const TABLES_READ = 5

/** Why partitions of the task wait although the task is open: its tables, or its own limit. */
export function TableFindings({ view }: { view: TaskView }) {
  const { state, partitions, settings } = view
  if (state !== 'open' || partitions.ready + partitions.held === 0) return null
  const { maxLeases } = settings
  return (
    <>
      {maxLeases !== null && partitions.leased >= maxLeases ? (
        <Finding kind="hint" title="The task is at its limit">
          {counted(partitions.leased, 'lease')} of at most {exact(maxLeases)} run; the rest waits. The limit
          is one of its settings.
        </Finding>
      ) : null}
      <Tables key={view.taskId} names={view.computeTables.slice(0, TABLES_READ)} />
    </>
  )
}

function Tables({ names }: { names: readonly string[] }) {
  const { loaded } = usePolled(
    () => load(() => Promise.all(names.map((name) => client.peek().table(name)))),
    READ_EVERY_MILLIS,
    [names.join()],
  )
  if (loaded.kind !== 'there') return null
  return loaded.value.map((table) => {
    const what = obstacleOf(table)
    if (what === null) return null
    const { kind, title, text } = what
    return (
      <Finding
        key={table.table}
        kind={kind}
        title={title}
        action={
          <a class="button" href={hrefOf({ ...tablesRoute, search: table.table })}>
            See the table
          </a>
        }
      >
        {text}
      </Finding>
    )
  })
}

function obstacleOf(view: TableView) {
  const { table, leases, settings } = view
  if (settings.paused)
    return {
      kind: 'warn',
      title: `The table ${table} is paused`,
      text: 'Nothing of it is handed out, of any task.',
    } as const
  if (isAtLimit(view))
    return {
      kind: 'hint',
      title: `The table ${table} is at its limit`,
      text: `${counted(leases, 'lease')} of at most ${exact(settings.maxLeases ?? 0)} run, over all tasks; the rest waits.`,
    } as const
  if (isUnasked(view))
    return {
      kind: 'warn',
      title: `Nobody pulls ${table}`,
      text: `Partitions of it wait, and ${unaskedWords(view)}.`,
    } as const
  return null
}

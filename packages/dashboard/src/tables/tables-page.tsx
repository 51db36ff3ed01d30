import type { TableView } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { refine } from '../current-route.ts'
import { Confirmation, useControl } from '../parts/control.tsx'
import { CopyAs } from '../parts/copy.tsx'
import { Search } from '../parts/filters.tsx'
import { compact, counted, exact, perSecond } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { Empty, Scrolling, Skeleton } from '../parts/panel.tsx'
import { Head, Name, unseen } from '../parts/table.tsx'
import { type Route, taskHref } from '../route.ts'
import { client, mayControl } from '../service/connection.ts'
import { load, usePolled } from '../service/live.ts'
import { type Pages, readPages } from '../service/pages.ts'
import { isAtLimit, isUnasked, unaskedWords } from './unasked.tsx'

type TablesRoute = Extract<Route, { page: 'tables' }>

const READ_EVERY_MILLIS = 4000
const ROWS_SHOWN = 300

const loadTables = () =>
  readPages(async (from) => {
    const { tables, next } = await client.peek().tables(from)
    return { items: tables, next }
  })

/** The compute tables over all tasks: what runs on each against its limit, what waits, and who asks for it. */
export function TablesPage({ at }: { at: TablesRoute }) {
  const { loaded, refresh } = usePolled(() => load(loadTables), READ_EVERY_MILLIS)
  return (
    <main class="page" id="content">
      <header class="task-head">
        <h1 class="task-title">Tables</h1>
        <div class="buttons">
          <CopyAs path="tables" />
        </div>
      </header>
      {loaded.kind === 'loading' ? <Skeleton lines={6} /> : null}
      {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
      {loaded.kind === 'there' ? <Tables loaded={loaded.value} at={at} refresh={refresh} /> : null}
    </main>
  )
}

interface TablesProps {
  readonly loaded: Pages<TableView>
  readonly at: TablesRoute
  readonly refresh: () => void
}

function Tables({ loaded: { items: tables, hasMore }, at, refresh }: TablesProps) {
  const [edited, setEdited] = useState<TableView | null>(null)
  const matching = tables.filter(({ table }) => table.includes(at.search)).sort(byNeed)
  return (
    <section class="panel" aria-labelledby="tables-title">
      <header class="panel-head">
        <h2 id="tables-title">Compute tables</h2>
        <p class="muted">{counted(matching.length, 'table')} with work or settings</p>
        <Search
          label="Search tables by name"
          placeholder="Search tables"
          value={at.search}
          search={(search) => refine({ ...at, search })}
        />
      </header>
      {matching.length === 0 ? (
        <Empty title={tables.length === 0 ? 'No table has unfinished partitions.' : 'No table matches.'} />
      ) : (
        <Scrolling label="Rows of tables">
          <table class="fleet">
            <Head
              columns={[
                'Table',
                ['Leases', 'number'],
                ['Waiting', 'number wide-only'],
                ['Tasks', 'wide-only'],
                ['Workers', 'number wide-only'],
                ['Records/s', 'number wide-only'],
                ['Last asked for', 'wide-only'],
                [unseen('Action'), ''],
              ]}
            />
            <tbody>
              {matching.slice(0, ROWS_SHOWN).map((table) => (
                <TableRow key={table.table} table={table} edit={() => setEdited(table)} />
              ))}
            </tbody>
          </table>
        </Scrolling>
      )}
      {matching.length > ROWS_SHOWN || hasMore ? (
        <p class="quiet">There are more tables than are listed here; search to find one.</p>
      ) : null}
      {edited === null ? null : (
        <SettingsDialog table={edited} refresh={refresh} onClose={() => setEdited(null)} />
      )}
    </section>
  )
}

/** Those with most waiting first. */
function byNeed(a: TableView, b: TableView): number {
  return b.waiting.records - a.waiting.records || b.leases - a.leases || (a.table < b.table ? -1 : 1)
}

function TableRow({ table, edit }: { table: TableView; edit: () => void }) {
  const { leases, waiting, workers, pace, lastAskedAt, settings } = table
  const records = `${compact(waiting.records)} ${waiting.records === 1 ? 'record' : 'records'}`
  return (
    <tr>
      <th scope="row">
        <Name text={table.table} />
        <span class="under narrow-only">
          {exact(waiting.partitions)} waiting, {records}
        </span>
        {isUnasked(table) ? <span class="under narrow-only alarm">{unaskedWords(table)}</span> : null}
      </th>
      <td class="number">
        {exact(leases)}
        {settings.maxLeases === null ? '' : ` of ${exact(settings.maxLeases)}`}
        {settings.paused || isAtLimit(table) ? (
          <span class="under">
            <span class={settings.paused ? 'tag' : 'tag warn'}>
              {settings.paused ? 'paused' : 'at its limit'}
            </span>
          </span>
        ) : null}
      </td>
      <td class="number wide-only" title={`${exact(waiting.records)} records`}>
        {exact(waiting.partitions)}
        <span class="under">{records}</span>
      </td>
      <td class="wide-only">
        <TasksOf table={table} />
      </td>
      <td class="number wide-only">{exact(workers)}</td>
      <td class="number wide-only">{perSecond(pace.recordsPerSecond)}</td>
      <td class={isUnasked(table) ? 'wide-only alarm' : 'wide-only'}>
        {lastAskedAt === null ? 'not yet' : <Ago at={lastAskedAt} />}
      </td>
      <td class="acts">
        {mayControl.value ? (
          <button type="button" class="button small" aria-label={`Edit ${table.table}`} onClick={edit}>
            Edit
          </button>
        ) : null}
      </td>
    </tr>
  )
}

function TasksOf({ table: { tasks, taskIds } }: { table: TableView }) {
  const [first] = taskIds
  if (first === undefined) return '–'
  return (
    <>
      <Name text={first} href={taskHref(first)} />
      {tasks > 1 ? (
        <span class="under" title={taskIds.slice(1).join(', ')}>
          and {counted(tasks - 1, 'other')}
        </span>
      ) : null}
    </>
  )
}

interface DialogProps {
  readonly table: TableView
  readonly refresh: () => void
  readonly onClose: () => void
}

function SettingsDialog({ table: { table, settings }, refresh, onClose }: DialogProps) {
  const { busy, request } = useControl(refresh)
  const [limit, setLimit] = useState(settings.maxLeases === null ? '' : String(settings.maxLeases))
  const [paused, setPaused] = useState(settings.paused)
  const [fault, setFault] = useState<string | null>(null)
  const save = async () => {
    if (limit !== '' && !/^\d{1,9}$/.test(limit)) {
      setFault('The limit must be digits, or empty for none.')
      return
    }
    const maxLeases = limit === '' ? null : Number(limit)
    const isDone = await request(
      () => client.peek().changeTableSettings(table, { maxLeases, paused }),
      () => `Saved the settings of ${table}`,
      setFault,
    )
    if (isDone) onClose()
  }
  return (
    <Confirmation
      title={table}
      action="Save"
      dismiss="Cancel"
      busy={busy}
      fault={fault}
      onConfirm={() => void save()}
      onClose={onClose}
    >
      <label class="field">
        <span>Most leases at a time</span>
        <input
          type="text"
          inputMode="numeric"
          placeholder="no limit"
          value={limit}
          aria-invalid={fault !== null}
          onInput={(event) => setLimit(event.currentTarget.value.trim())}
        />
        <small>Over all tasks and workers. Leases that run are not ended.</small>
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={paused}
          onChange={(event) => setPaused(event.currentTarget.checked)}
        />
        Paused: nothing of this table is handed out
      </label>
    </Confirmation>
  )
}

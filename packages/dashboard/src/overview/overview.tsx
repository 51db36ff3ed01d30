import type { Change } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { InstancePanel } from '../instance/instance-panel.tsx'
import { HistoryChart, SpanSelect, spans } from '../parts/history.tsx'
import { Ago } from '../parts/moment.tsx'
import { Copyable, Empty, Skeleton } from '../parts/panel.tsx'
import type { SpanName } from '../route.ts'
import { baseUrl, client, explained, mayControl, token } from '../service/connection.ts'
import { now } from '../service/live.ts'
import { useReading } from '../service/reading.ts'
import { tasks, tasksLoad } from '../service/tasks.ts'
import { UnaskedTables } from '../tables/unasked.tsx'
import { Figures, LevelBacklog } from './figures.tsx'
import { TaskPanel } from './task-panel.tsx'

/** Shows whether work progresses, whether anything is stuck, and when it will be done. */
export function Overview({ span }: { span: SpanName }) {
  const isEmpty = tasksLoad.value === 'loaded' && tasks.value.size === 0
  return (
    <main class="page" id="content">
      <h1 class="visually-hidden">Overview</h1>
      {isEmpty ? null : <Figures />}
      {isEmpty ? null : <UnaskedTables />}
      <div class="columns">
        <div class="column">
          {isEmpty ? <FirstCallBack /> : <ThroughputPanel chosen={span} />}
          {isEmpty ? null : <TaskPanel />}
        </div>
        <div class="column">
          {isEmpty ? null : <LevelBacklog />}
          <InstancePanel />
          {mayControl.value ? <AuditPanel /> : null}
        </div>
      </div>
    </main>
  )
}

/** What all tasks together have done, from the history that the service keeps. */
function ThroughputPanel({ chosen }: { chosen: SpanName }) {
  const span = spans[chosen]
  const { step } = span
  const { loaded } = useReading(
    () => client.peek().throughputOfAll({ step, from: new Date(Date.now() - span.millis) }),
    [chosen],
    Math.floor(now.value / 5000),
  )
  return (
    <section class="panel" aria-labelledby="throughput-title">
      <header class="panel-head">
        <h2 id="throughput-title">Records per {step}</h2>
        <div class="filters">
          <SpanSelect />
        </div>
      </header>
      {loaded.kind === 'failed' ? <p class="muted chart-note">{loaded.detail}</p> : null}
      {loaded.kind === 'there' ? (
        <HistoryChart throughput={loaded.value} measure="records" span={span} />
      ) : (
        <Skeleton lines={4} />
      )}
    </section>
  )
}

/** Shown before the first task: an example of a call-back with the URL of this service. */
function FirstCallBack() {
  const [tableField, setTableField] = useState('computeTableName')
  useEffect(() => {
    tableFieldOf().then(setTableField, () => {})
  }, [])
  return (
    <section class="panel first" aria-labelledby="first-title">
      <h2 id="first-title">Baton is ready for its first task</h2>
      <p>
        A task exists after its first call-back. Paste this command into a terminal; the task appears here at
        once.
      </p>
      <Copyable label="A first call-back" text={callBackCommand(tableField)} />
      <p>Then pull a partition as a worker:</p>
      <Copyable label="A first pull" text={pullCommand()} />
      <p class="muted">
        For everything else, with examples, see the <a href="docs">API reference</a>.
      </p>
    </section>
  )
}

const bearer = () => (token.value === null ? '' : ` \\\n  -H 'Authorization: Bearer <token>'`)

function callBackCommand(tableField: string): string {
  const descriptor = (level: number, index: number, records: number) =>
    `  {"taskId": "first", "${tableField}": "results.first",\n` +
    `   "partition_name": "first-${level}-${index}", "record_count": ${records}, "priorityLevel": ${level}}`
  const descriptors = [descriptor(0, 0, 1200), descriptor(0, 1, 800), descriptor(1, 0, 5000)].join(',\n')
  return `curl -X POST ${baseUrl}call-back${bearer()} \\
  -H 'Content-Type: application/json' \\
  -d '[
${descriptors}
]'`
}

function pullCommand(): string {
  return `curl ${baseUrl}pull${bearer()} \\\n  -H 'X-Instance-Id: my-first-worker'`
}

const fixedFields = ['taskId', 'partition_name', 'record_count', 'priorityLevel']

interface DescriptorPart {
  readonly components?: { readonly schemas?: { readonly PartitionDescriptor?: { properties?: object } } }
}

/** The name of the table field in this deployment, from its API document. */
async function tableFieldOf(): Promise<string> {
  const headers = token.peek() === null ? {} : { authorization: `Bearer ${token.peek()}` }
  const response = await fetch(new URL('openapi.json', baseUrl), { headers })
  const { components } = (await response.json()) as DescriptorPart
  const fields = components?.schemas?.PartitionDescriptor?.properties ?? {}
  const own = Object.keys(fields).find((field) => !fixedFields.includes(field))
  if (own === undefined) throw new Error('the document does not describe a partition')
  return own
}

const ENTRIES_SHOWN = 20

type Shown = { readonly entries: readonly Change[] } | { readonly fault: string }

/**
 * The audit log. Loaded only when the user requests it, because it requires an operator: each automatic
 * request of a viewer would add an entry about a refused token.
 */
function AuditPanel() {
  const [shown, setShown] = useState<Shown>()
  const load = () =>
    client
      .peek()
      .audit({ limit: ENTRIES_SHOWN })
      .then(setShown, (error: unknown) => setShown({ fault: explained(error) }))
  return (
    <section class="panel" aria-labelledby="audit-title">
      <header class="panel-head">
        <h2 id="audit-title">Audit</h2>
        <button type="button" class="button small" onClick={() => void load()}>
          {shown === undefined ? 'Show audit' : 'Refresh audit'}
        </button>
      </header>
      {shown === undefined ? <p class="quiet">Who changed what, for operators.</p> : null}
      {shown !== undefined && 'fault' in shown ? <Empty title={shown.fault} /> : null}
      {shown !== undefined && 'entries' in shown ? <Entries entries={shown.entries} /> : null}
    </section>
  )
}

function Entries({ entries }: { entries: readonly Change[] }) {
  if (entries.length === 0) return <Empty title="Nothing was changed." />
  return (
    <ul class="failures" aria-label="Audit entries">
      {entries.map(({ at, name, address, action, taskId, target }, place) => (
        <li key={`${at} ${place}`}>
          <strong>{name ?? address ?? 'the service'}</strong> {action} {taskId} {target}{' '}
          <span class="muted">
            <Ago at={at} />
          </span>
        </li>
      ))}
    </ul>
  )
}

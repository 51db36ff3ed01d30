import { useEffect, useState } from 'preact/hooks'
import { Copyable } from '../parts/copyable.tsx'
import { baseUrl, token } from '../service/connection.ts'
import { tableFieldOf } from './table-field.ts'

/** Shown before the first task: an example of a call-back with the URL of this service. */
export function FirstCallBack() {
  const [tableField, setTableField] = useState('computeTableName')
  useEffect(() => {
    tableFieldOf().then(setTableField, () => {})
  }, [])
  return (
    <section class="panel first" aria-labelledby="first-title">
      <h2 id="first-title">Baton is ready for its first task</h2>
      <p>
        A task comes into being when a producer calls its partitions back. Paste this into a terminal; it
        appears here at once.
      </p>
      <Copyable label="A first call-back" text={callBackCommand(tableField)} />
      <p>Then take a partition as a worker would:</p>
      <Copyable label="A first pull" text={pullCommand()} />
      <p class="muted">
        Everything else, with examples, is in the <a href="docs">API reference</a>.
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

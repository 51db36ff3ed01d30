import type { AuditEntry } from '@baton/protocol'
import { useState } from 'preact/hooks'
import { Empty } from '../parts/empty.tsx'
import { Ago } from '../parts/moment.tsx'
import { client, explained } from '../service/connection.ts'

const ENTRIES_SHOWN = 20

type Shown = { readonly entries: readonly AuditEntry[] } | { readonly fault: string }

/**
 * The audit log. Loaded only when the user requests it, because it requires an operator: each automatic
 * request of a viewer would add an entry about a refused token.
 */
export function AuditPanel() {
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
      {shown === undefined ? <p class="quiet">Orders and refused tokens, for operators.</p> : null}
      {shown !== undefined && 'fault' in shown ? <Empty title={shown.fault} /> : null}
      {shown !== undefined && 'entries' in shown ? <Entries entries={shown.entries} /> : null}
    </section>
  )
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  if (entries.length === 0) return <Empty title="Nothing was ordered or refused since this node started." />
  return (
    <ul class="failures" aria-label="Audit entries">
      {entries.map(({ at, name, address, action, outcome, times }, place) => (
        <li key={`${at} ${place}`}>
          <strong>{name ?? address ?? 'the service'}</strong> {action}{' '}
          <span class="muted">
            {outcome === 'done' ? 'done' : outcome.replaceAll('_', ' ')}
            {times > 1 ? ` × ${times}` : ''}, <Ago at={at} />
          </span>
        </li>
      ))}
    </ul>
  )
}

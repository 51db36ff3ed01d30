import type { DefinedSubscription, StoredSubscription } from './outbox.ts'

/** How long the secret before goes on signing when the file has a new one. */
const OVERLAP_MILLIS = 86_400_000

/** What has to change for the store to have the subscriptions of the file. */
export interface DefinitionChanges {
  readonly made: readonly DefinedSubscription[]
  readonly changed: readonly StoredSubscription[]
}

export function definitionChanges(
  stored: Iterable<StoredSubscription>,
  defined: readonly DefinedSubscription[],
  now: number,
): DefinitionChanges {
  const named = new Map<string, StoredSubscription>()
  for (const row of stored) if (row.name !== undefined && row.state !== 'removed') named.set(row.name, row)
  const made: DefinedSubscription[] = []
  const changed: StoredSubscription[] = []
  for (const one of defined) {
    const row = named.get(one.name)
    named.delete(one.name)
    if (row === undefined) made.push(one)
    else if (departs(row, one)) changed.push(brought(row, one, now))
  }
  for (const row of named.values()) changed.push({ ...row, state: 'removed' })
  return { made, changed }
}

function departs(row: StoredSubscription, { url, types, taskPrefix, secret }: DefinedSubscription): boolean {
  return (
    row.url !== url ||
    row.taskPrefix !== taskPrefix ||
    row.types.join() !== types.join() ||
    row.secrets[0]?.secret !== secret
  )
}

function brought(row: StoredSubscription, defined: DefinedSubscription, now: number): StoredSubscription {
  const { url, types, taskPrefix, secret } = defined
  const [current] = row.secrets
  const secrets =
    current === undefined || current.secret === secret
      ? row.secrets
      : [
          { secret, until: null },
          { secret: current.secret, until: now + OVERLAP_MILLIS },
        ]
  // That a receiver wanted no more says nothing of another one.
  const isMoved = row.url !== url
  return { ...row, url, types, taskPrefix, secrets, ...(isMoved ? { state: 'active', reason: null } : {}) }
}

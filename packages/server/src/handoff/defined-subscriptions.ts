import { type DefinedSubscription, MAX_SUBSCRIPTIONS, type StoredSubscription } from './outbox.ts'

/** How long the previous secret continues to sign after the file has a new one. */
const OVERLAP_MILLIS = 86_400_000

/** The changes that make the store match the subscriptions file. */
interface DefinitionChanges {
  readonly made: readonly DefinedSubscription[]
  readonly changed: readonly StoredSubscription[]
  /** Those of the file for which there is no room beside the others. They are made when there is. */
  readonly omitted: readonly DefinedSubscription[]
}

export function definitionChanges(
  stored: Iterable<StoredSubscription>,
  defined: readonly DefinedSubscription[],
  now: number,
): DefinitionChanges {
  const named = new Map<string, StoredSubscription>()
  let count = 0
  for (const row of stored) {
    if (row.state === 'removed') continue
    count += 1
    if (row.name !== undefined) named.set(row.name, row)
  }
  const made: DefinedSubscription[] = []
  const changed: StoredSubscription[] = []
  for (const one of defined) {
    const row = named.get(one.name)
    named.delete(one.name)
    if (row === undefined) made.push(one)
    else if (differs(row, one)) changed.push(updated(row, one, now))
  }
  for (const row of named.values()) changed.push({ ...row, state: 'removed' })
  const omitted = made.splice(Math.max(0, MAX_SUBSCRIPTIONS - count + named.size))
  return { made, changed, omitted }
}

function differs(row: StoredSubscription, { url, types, taskPrefix, secret }: DefinedSubscription): boolean {
  return (
    row.url !== url ||
    row.taskPrefix !== taskPrefix ||
    row.types.join() !== types.join() ||
    row.secrets[0]?.secret !== secret
  )
}

function updated(row: StoredSubscription, defined: DefinedSubscription, now: number): StoredSubscription {
  const { url, types, taskPrefix, secret } = defined
  const [current] = row.secrets
  const secrets =
    current === undefined || current.secret === secret
      ? row.secrets
      : [
          { secret, until: null },
          { secret: current.secret, until: now + OVERLAP_MILLIS },
        ]
  // A subscription that was disabled because of its receiver becomes active again with a new receiver.
  const isMoved = row.url !== url
  return { ...row, url, types, taskPrefix, secrets, ...(isMoved ? { state: 'active', reason: null } : {}) }
}

import { givenUpAt, type History, type SeenLease, story } from './history.ts'
import { ROUNDING_MILLIS } from './lease-checks.ts'
import type { Span } from './order-checks.ts'
import { requestKinds } from './request-kinds.ts'
import type { Findings, Scene } from './scene.ts'

/** The compute table with a limit. Nothing waits behind it: its level is the highest. */
export const LIMITED_TABLE = 'results.limited'
export const LIMITED_LEVEL = 8

export async function setLimit({ client, chance, size: { maxLeases } }: Scene): Promise<void> {
  if (maxLeases === null) return
  const request = { path: `/tables/${LIMITED_TABLE}/settings`, body: { maxLeases } }
  await client.sendUntilAccepted(requestKinds.tableSettings, request, chance.for('limit'))
}

/** The table never has more leases than its limit, and only its leases are refused for that. */
export function checkLimit(history: History, maxLeases: number | null, findings: Findings): void {
  const limited: { readonly at: number; readonly lease: SeenLease; readonly begins: boolean }[] = []
  for (const lease of history.leases.values()) {
    const isLimited = maxLeases !== null && lease.partition.computeTableName === LIMITED_TABLE
    const live = isLimited ? certainlyLive(lease, history) : undefined
    if (live !== undefined)
      limited.push({ at: live.from, lease, begins: true }, { at: live.until, lease, begins: false })
    if (!isLimited && lease.renewals.some(({ refusal }) => refusal === 'limit_reached'))
      findings.add(`refused for a limit that its table does not have: ${story(lease)}`)
  }
  const live = new Set<SeenLease>()
  // At the same time, those that end come first.
  for (const { lease, begins } of limited.toSorted(
    (a, b) => a.at - b.at || Number(a.begins) - Number(b.begins),
  )) {
    if (!begins) {
      live.delete(lease)
      continue
    }
    live.add(lease)
    if (live.size <= (maxLeases ?? Number.POSITIVE_INFINITY)) continue
    findings.add(`${live.size} leases where ${maxLeases} are allowed: ${[...live].map(story).join(' | ')}`)
    return
  }
}

/** The last term of the lease, from the answer that stated it, unless something may have ended it before. */
function certainlyLive(lease: SeenLease, { tasks }: History): Span | undefined {
  const { cancelSentAt = Number.POSITIVE_INFINITY } = tasks.get(lease.partition.taskId) ?? {}
  const last = lease.runs.toSorted((a, b) => b.until - a.until)[0]
  if (last === undefined) return undefined
  const from = last.said.receivedAt
  const until = Math.min(last.until - ROUNDING_MILLIS, givenUpAt(lease), cancelSentAt)
  return from < until ? { from, until } : undefined
}

import { next } from '../../../handoff/rules/life-cycle.ts'
import type { Policy } from '../../../handoff/rules/policy.ts'
import { plainVerdict } from '../leases/settle-plain.ts'
import { saveNotedKeys } from '../pull/pull-keys.ts'
import { enterSets, largestSet, NEXT_SET, SETS_AT_ONCE, setsLeftBy } from '../queues/due-sets.ts'
import { besideId } from '../rows/beside-ids.ts'
import { type Statement, statement } from '../session/statement.ts'
import { textArray } from '../session/text-arrays.ts'
import type { Transaction } from '../session/transaction.ts'
import { countedBySeconds, type Finish, foldNotes, type Lease, setsOf } from './folded-notes.ts'
import { type Note, readNote } from './notes.ts'

const removeNotes = statement(
  'remove-notes',
  'DELETE FROM baton.note WHERE number BETWEEN $1 AND $2 RETURNING number',
)
const removeLeftNotes = statement('remove-left-notes', 'DELETE FROM baton.note RETURNING number, at, body')

/** In SQL: what both kinds of hand-out write into the row of a partition, from arrays beside the sorted ids. */
const handedOut = `term = p.term + 1, rank = ${besideId('$2::bigint[]')}, fresh = ${besideId('$4::boolean[]')},
       secret = ${besideId('$5::text[]')}, holder = ${besideId('$6::bigint[]')}, leased_at = ${besideId('$7::bigint[]')},
       due_at = ${besideId('$8::bigint[]')}`
const waiting = `p.id = ANY ($1::bigint[]) AND p.state = 'held' AND p.stay = ${besideId('$3::int[]')}`
/** Places are where they were read: nobody else took any. */
const taken = 'DELETE FROM baton.ready WHERE ctid = ANY ($9::tid[]) AND id = ANY ($1::bigint[])'
/** In SQL: which of the partitions were changed, if not all of them. */
const changed = (rows: string) =>
  `CASE WHEN (SELECT count(*) FROM ${rows}) < cardinality($1::bigint[]) THEN ARRAY(SELECT id FROM ${rows}) END AS changed`

const leased = statement(
  'write-up-leased',
  `WITH numbers AS MATERIALIZED (SELECT ${NEXT_SET} AS first), taken AS (${taken}), leased AS (
     UPDATE baton.partition p SET state = $10, outcome = NULL, ${handedOut},
       due_with = (SELECT first FROM numbers) + ${besideId('$11::int[]')}
     WHERE ${waiting} RETURNING p.id, p.due_at, p.due_with, p.holder
   ), queued AS (
     ${enterSets('leased')}
   )
   SELECT ${changed('leased')}`,
)
/** Handed out and settled since the last time: the row is written once, and the lease was never due. */
const done = statement(
  'write-up-done',
  `WITH taken AS (${taken}), done AS (
     UPDATE baton.partition p SET state = $10, ${handedOut}, outcome = $11, releases = $12, attempts = p.attempts + $13,
       settled_at = ${besideId('$14::bigint[]')}, reported_records = coalesce(${besideId('$15::bigint[]')}, p.reported_records)
     WHERE ${waiting} RETURNING p.id
   )
   SELECT ${changed('done')}`,
)
const finished = statement(
  'write-up-finished',
  `WITH finished AS (
     UPDATE baton.partition p SET state = $2, outcome = $3, releases = $4, attempts = p.attempts + $5,
       settled_at = ${besideId('$6::bigint[]')}, reported_records = coalesce(${besideId('$7::bigint[]')}, p.reported_records)
     WHERE p.id = ANY ($1::bigint[]) AND p.state = 'leased' AND p.term = ${besideId('$8::int[]')}
       AND p.secret = ${besideId('$9::text[]')}
     RETURNING p.id, p.due_at, p.due_with
   )
   SELECT ${changed('finished')}, ${setsLeftBy('finished')} AS sets_left`,
)

export interface WrittenUp {
  /** Sets of leases that have to shrink; see shrinking.ts. */
  readonly setsLeft: readonly string[]
  /** Partitions that were not as the notes say. There are none, unless something is wrong. */
  readonly missing: number
  /** Lanes whose tripwire was handed out. */
  readonly tripped: readonly number[]
}

/**
 * The most partitions of a statement. What is looked up in an array of texts is counted off from its beginning: with 3,400
 * partitions in one statement each took 30 µs of PostgreSQL's time, with 250 it takes 12.
 */
const PART = Math.min(250, SETS_AT_ONCE)

const NOTHING: WrittenUp = { setsLeft: [], missing: 0, tripped: [] }

/** Undefined when somebody else has written these notes up: this node was alone no more. */
export async function writeUp(
  tx: Transaction,
  notes: readonly Note[],
  policy: Policy,
): Promise<WrittenUp | undefined> {
  const rows = await tx.write(removeNotes, [notes[0]?.number, notes.at(-1)?.number])
  if (rows.length === 0) return undefined
  if (rows.length < notes.length) throw new Error('some of the notes are gone and others are not')
  return write(tx, notes, policy)
}

/** Notes of a node that is no more. Two that meet here meet on their rows: the second finds none left. */
export async function writeUpLeft(tx: Transaction, policy: Policy): Promise<WrittenUp> {
  const rows = await tx.write(removeLeftNotes)
  const notes = rows.map(readNote).sort((a, b) => a.number - b.number)
  return notes.length === 0 ? NOTHING : write(tx, notes, policy)
}

async function write(tx: Transaction, notes: readonly Note[], policy: Policy): Promise<WrittenUp> {
  const { leases, finishes, keys } = foldNotes(notes)
  const running = leases.filter(({ finish }) => finish === null)
  const over = leases.filter(({ finish }) => finish !== null)
  const { to, outcome, releasesInARow, attempts } = plainVerdict(policy)
  const end = [to, outcome, releasesInARow, attempts]
  const writing = [
    ...inParts(running).map((some) => {
      const sets = textArray(setsOf(some, largestSet(policy)))
      return change(tx, leased, some, [...handedOutValues(some), next('ready', 'lease'), sets])
    }),
    ...inParts(over).map((some) => {
      const ends = some.flatMap(({ finish }) => finish ?? [])
      return change(tx, done, some, [...handedOutValues(some), ...end, ...endValues(ends)])
    }),
    ...inParts(finishes).map((some) =>
      change(tx, finished, some, [...end, ...endValues(some), ...leaseValues(some)]),
    ),
  ]
  saveNotedKeys(tx, keys)
  const written = await Promise.all(writing)
  const ids = new Set(written.flatMap(({ changed: of }) => of))
  const isWritten = ({ id }: { readonly id: number }) => ids.has(id)
  for (const { at, deltas } of countedBySeconds(leases.filter(isWritten), finishes.filter(isWritten)))
    await deltas.flush(tx, at)
  return {
    setsLeft: written.flatMap(({ setsLeft }) => setsLeft),
    missing: leases.length + finishes.length - ids.size,
    tripped: [...new Set(leases.flatMap(({ refill, lane }) => (refill ? lane.id : [])))],
  }
}

function inParts<Element>(elements: readonly Element[]): Element[][] {
  return Array.from({ length: Math.ceil(elements.length / PART) }, (_, part) =>
    elements.slice(part * PART, (part + 1) * PART),
  )
}

interface Changed {
  readonly changed: readonly number[]
  readonly setsLeft: readonly string[]
}

/** The first of the values are the ids. */
async function change(
  tx: Transaction,
  by: Statement,
  partitions: readonly { readonly id: number }[],
  values: readonly unknown[],
): Promise<Changed> {
  const ids = partitions.map(({ id }) => id)
  if (ids.length === 0) return { changed: [], setsLeft: [] }
  const [row] = await tx.write(by, [textArray(ids), ...values])
  const changed = row?.['changed'] as string[] | null
  return { changed: changed?.map(Number) ?? ids, setsLeft: (row?.['sets_left'] ?? []) as string[] }
}

function handedOutValues(leases: readonly Lease[]): unknown[] {
  return [
    textArray(leases.map(({ rank }) => rank)),
    textArray(leases.map(({ stay }) => stay)),
    textArray(leases.map(({ fresh }) => String(fresh))),
    textArray(leases.map(({ secret }) => secret)),
    textArray(leases.map(({ holder }) => holder)),
    textArray(leases.map(({ at }) => at)),
    textArray(leases.map(({ dueAt }) => dueAt)),
    leases.map(({ place }) => place),
  ]
}

function endValues(finishes: readonly Finish[]): unknown[] {
  return [textArray(finishes.map(({ at }) => at)), textArray(finishes.map(({ reported }) => reported))]
}

function leaseValues(finishes: readonly Finish[]): unknown[] {
  return [textArray(finishes.map(({ term }) => term)), textArray(finishes.map(({ secret }) => secret))]
}

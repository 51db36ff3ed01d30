import type { LaneKey } from '../rows/entries.ts'
import type { Connection } from '../session/connection.ts'
import { NOW, statement } from '../session/statement.ts'

/** As the sequence of runs counts; what a run numbers no other does. */
export const NOTES_OF_A_RUN = 1_000_000

/** A partition that was handed out, with all that its row has to be told. */
export interface NotedLease {
  readonly id: number
  readonly lane: LaneKey
  readonly recordCount: number
  /** Of the lease. */
  readonly term: number
  readonly secret: string
  readonly holder: number | null
  readonly lastsMillis: number
  readonly key: string | null
  /** Of its place in `ready`. */
  readonly place: string
  readonly rank: string
  readonly stay: number
  readonly fresh: boolean
  readonly refill: boolean
}

/** A lease that was settled as done. */
export interface NotedFinish {
  readonly id: number
  readonly lane: LaneKey
  readonly recordCount: number
  readonly term: number
  readonly secret: string
  readonly reported: number | null
}

/** What one batch came to. */
export interface Note {
  readonly number: number
  readonly at: number
  readonly given: readonly NotedLease[]
  readonly finished: readonly NotedFinish[]
}

/**
 * Nothing is noted when one of the keys was given leases before. Those that were since this node is alone it knows itself.
 */
const write = statement(
  'write-note',
  `INSERT INTO baton.note (number, at, body) SELECT $1, coalesce($2::bigint, ${NOW}), $3
   WHERE NOT EXISTS (SELECT FROM baton.pull_key WHERE key = ANY ($4::text[])) RETURNING at`,
)
const writeUnkeyed = statement(
  'write-note-unkeyed',
  `INSERT INTO baton.note (number, at, body) VALUES ($1, coalesce($2::bigint, ${NOW}), $3) RETURNING at`,
)

/** Durable when it resolves, with the time that it has if none was given; undefined when one of the keys is known. */
export async function writeNote(
  connection: Connection,
  { number, at, given, finished }: Omit<Note, 'at'> & { readonly at: number | null },
  keys: readonly string[],
): Promise<number | undefined> {
  const values = [number, at, JSON.stringify([given.map(packLease), finished.map(packFinish)])]
  const [row] =
    keys.length === 0
      ? await connection.runAlone(writeUnkeyed, values)
      : await connection.runAlone(write, [...values, keys])
  return row?.['at'] as number | undefined
}

/** Whether a note was stored is not known: its leases are found by their secrets, once the notes are written up. */
export class NoteInDoubt extends Error {
  override name = 'NoteInDoubt'
  readonly secrets: readonly string[]
  constructor(secrets: readonly string[], options: ErrorOptions) {
    super('the connection was lost while a note was written', options)
    this.secrets = secrets
  }
}

/** A row of the table as it was noted. */
export function readNote(row: Record<string, unknown>): Note {
  const [given, finished] = JSON.parse(row['body'] as string) as [PackedLease[], PackedFinish[]]
  return {
    number: row['number'] as number,
    at: row['at'] as number,
    given: given.map(unpackLease),
    finished: finished.map(unpackFinish),
  }
}

/** Without the names of the fields: they would be most of the note. */
const packLease = (lease: NotedLease) =>
  [
    ...packFinish(lease),
    lease.holder,
    lease.lastsMillis,
    lease.key,
    lease.place,
    lease.rank,
    lease.stay,
    lease.fresh,
    lease.refill,
  ] as const
const packFinish = ({
  id,
  lane,
  recordCount,
  term,
  secret,
  reported = null,
}: NotedFinish | (NotedLease & { reported?: null })) =>
  [id, lane.id, lane.task, lane.level, recordCount, term, secret, reported] as const

type PackedLease = ReturnType<typeof packLease>
type PackedFinish = ReturnType<typeof packFinish>

function unpackLease(packed: PackedLease): NotedLease {
  const [id, lane, task, level, recordCount, term, secret, , ...rest] = packed
  const [holder, lastsMillis, key, place, rank, stay, fresh, refill] = rest
  return {
    ...{ id, lane: { id: lane, task, level }, recordCount, term, secret },
    ...{ holder, lastsMillis, key, place, rank, stay, fresh, refill },
  }
}

function unpackFinish([
  id,
  lane,
  task,
  level,
  recordCount,
  term,
  secret,
  reported,
]: PackedFinish): NotedFinish {
  return { id, lane: { id: lane, task, level }, recordCount, term, secret, reported }
}

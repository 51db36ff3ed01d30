import type { DatabaseSync, SQLInputValue } from 'node:sqlite'

// Writes the journal of schema version 6 to its rows. This code no longer changes.

type Values = readonly SQLInputValue[]

/** Rows as parameters of the statements below. Older entries have fewer lists. */
interface JournalEntry {
  readonly admits?: readonly Values[]
  readonly leases?: readonly Values[]
  readonly finishes?: readonly Values[]
  readonly levels?: readonly Values[]
  readonly moves?: readonly Values[]
  readonly lanes?: readonly Values[]
  readonly tasks?: readonly Values[]
  readonly paces?: readonly Values[]
  readonly keys?: readonly (readonly [key: string, leases: readonly string[], forgetAt: number])[]
}

const states = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled']
const counters = states.flatMap((state) => [`${state}_partitions`, `${state}_records`])

const NUMBER_LENGTH = 15
const CONTINUED = '+'

export function foldJournal(db: DatabaseSync): void {
  const sql = prepare(db)
  for (const entry of readJournal(db)) {
    for (const row of entry.admits ?? []) sql.admit.run(...row)
    for (const row of entry.leases ?? []) sql.lease.run(...row)
    for (const row of entry.finishes ?? []) sql.finish.run(...row)
    for (const row of entry.moves ?? []) sql.move.run(...row)
    for (const row of entry.levels ?? []) sql.level.run(...row)
    for (const row of entry.lanes ?? []) sql.lane.run(...row)
    for (const row of entry.tasks ?? []) sql.task.run(...row)
    for (const row of entry.paces ?? []) sql.pace.run(...row)
    for (const [key, leases, forgetAt] of entry.keys ?? []) sql.key.run(key, JSON.stringify(leases), forgetAt)
  }
}

/**
 * Each slot starts with its number. The numbers of valid slots are consecutive; slots after a break are left
 * over from earlier.
 */
function readJournal(db: DatabaseSync): JournalEntry[] {
  const entries: JournalEntry[] = []
  let text = ''
  let last: number | undefined
  for (const { entry } of db.prepare('SELECT entry FROM journal ORDER BY slot').iterate()) {
    const slot = entry as string
    const number = Number(slot.slice(0, NUMBER_LENGTH))
    if (last !== undefined && number !== last + 1) break
    last = number
    text += slot.slice(NUMBER_LENGTH + 1)
    if (slot[NUMBER_LENGTH] === CONTINUED) continue
    if (text.trimEnd() !== '') entries.push(JSON.parse(text) as JournalEntry)
    text = ''
  }
  return entries
}

function prepare(db: DatabaseSync) {
  const assignCounters = counters.map((column) => `${column} = ?`).join(', ')
  const addToCounters = counters.map((column) => `${column} = ${column} + ?`).join(', ')
  return {
    admit: db.prepare(`UPDATE partition SET state = 'ready', fresh = 1, rank = ? WHERE id = ?`),
    lease: db.prepare(
      `UPDATE partition SET state = 'leased', outcome = NULL, fresh = 0, term = ?, secret = ?, holder = ?, due_at = ?,
         leased_at = ? WHERE id = ?`,
    ),
    finish: db.prepare(
      `UPDATE partition SET state = 'done', due_at = NULL, outcome = ?, attempts = ?, settled_at = ?,
         reported_records = ? WHERE id = ?`,
    ),
    move: db.prepare(`UPDATE lane SET finish = ?, retry_finish = ?, ${addToCounters} WHERE id = ?`),
    level: db.prepare(
      `INSERT INTO level (level, virtual, served) VALUES (?, ?, ?)
       ON CONFLICT (level) DO UPDATE SET virtual = excluded.virtual, served = excluded.served`,
    ),
    lane: db.prepare(
      `UPDATE lane SET finish = ?, retry_finish = ?, parked_skipped = ?, purged = ?, purged_records = ?,
         ${assignCounters} WHERE id = ?`,
    ),
    task: db.prepare(
      `UPDATE task SET state = ?, paused = ?, cancelled = ?, sealed = ?, expected_partitions = ?, level_barrier = ?,
         open_level = ?, generation = ?, last_call_back_at = ?, finished_at = ?, purged_at = ?, delivered = ?,
         attempts_wasted = ?, reported_declared = ?, reported_records = ?, mismatched = ?, ${assignCounters}
       WHERE id = ?`,
    ),
    pace: db.prepare(
      `INSERT INTO pace (task, second, partitions, records) VALUES (?, ?, ?, ?)
       ON CONFLICT (task, second) DO UPDATE SET partitions = partitions + excluded.partitions,
         records = min(records + excluded.records, ${Number.MAX_SAFE_INTEGER})`,
    ),
    key: db.prepare('INSERT INTO pull_key (key, leases, forget_at) VALUES (?, ?, ?)'),
  }
}

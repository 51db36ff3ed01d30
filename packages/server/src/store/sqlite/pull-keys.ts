import type { DatabaseSync } from 'node:sqlite'

/** What a key was given, and how long it is remembered. */
export type KeyRow = readonly [key: string, leases: readonly string[], forgetAt: number]

/**
 * The keys of pulls. A new one is noted in the journal with its leases and written later, many at a time: each has a
 * place in two orders, and those of one batch side by side are on the same pages only if the client makes them so.
 */
export class PullKeys {
  readonly #unwritten = new Map<string, KeyRow>()
  readonly #sql: ReturnType<typeof prepare>
  #noted: KeyRow[] = []

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** The leases that a key was given; undefined for one that was never used. */
  leasesOf(key: string): readonly string[] | undefined {
    const unwritten = this.#unwritten.get(key)
    if (unwritten !== undefined) return unwritten[1]
    const row = this.#sql.leasesOf.get(key)
    return row === undefined ? undefined : (JSON.parse(row['leases'] as string) as string[])
  }

  remember(row: KeyRow): void {
    this.#unwritten.set(row[0], row)
    this.#noted.push(row)
  }

  /** Those of the running transaction, for the journal. */
  take(): readonly KeyRow[] {
    const noted = this.#noted
    this.#noted = []
    return noted
  }

  write(): void {
    this.replay(this.#unwritten.values())
    this.forget()
  }

  replay(rows: Iterable<KeyRow>): void {
    for (const [key, leases, forgetAt] of rows) this.#sql.save.run(key, JSON.stringify(leases), forgetAt)
  }

  forget(): void {
    this.#unwritten.clear()
    this.#noted = []
  }
}

function prepare(db: DatabaseSync) {
  return {
    leasesOf: db.prepare('SELECT leases FROM pull_key WHERE key = ?'),
    save: db.prepare('INSERT INTO pull_key (key, leases, forget_at) VALUES (?, ?, ?)'),
  }
}

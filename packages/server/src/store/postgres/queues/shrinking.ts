import { afterCommit } from '../session/after-commit.ts'
import { statement } from '../session/statement.ts'
import type { Transactions } from '../session/transactions.ts'

/** Nobody needs it sooner, and what is left together is mostly all that remains of a set: then it is one change. */
const SHRINK_MILLIS = 100

const SETS = 'NOT delayed AND due_at = ANY ($1::bigint[]) AND number = ANY ($2::bigint[])'
const LEASES = '($3::int[])[array_position($2::bigint[], number)]'
const end = statement('end-sets', `DELETE FROM baton.due WHERE ${SETS} AND remaining <= ${LEASES}`)
const shrink = statement(
  'shrink-sets',
  `UPDATE baton.due SET remaining = remaining - ${LEASES} WHERE ${SETS}`,
)
const endShrunk = statement('end-shrunk-sets', `DELETE FROM baton.due WHERE ${SETS} AND remaining <= 0`)

/**
 * Takes leases that hand-offs have ended off their sets in `due`, in transactions that lock nothing else: nobody waits
 * for it, and it waits for nobody who waits. If this node dies before, sets are left over. They are marked like others
 * that write: leases that were taken off twice would leave some that nobody finds when their time has come.
 */
export class Shrinking {
  readonly #transactions: Transactions
  readonly #failed: (error: unknown) => void
  #left: string[] = []
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()

  constructor(transactions: Transactions, failed: (error: unknown) => void) {
    this.#transactions = transactions
    this.#failed = failed
  }

  /** Sets as the statement told them: when they are due, their number, and how many leases of theirs have ended. */
  take(sets: readonly string[]): void {
    if (sets.length === 0) return
    this.#left.push(...sets)
    this.#timer ??= setTimeout(() => this.#start(), SHRINK_MILLIS)
  }

  /** Brings the sets up to date now. */
  async idle(): Promise<void> {
    if (this.#left.length > 0) this.#start()
    await this.#running
  }

  #start(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#running = this.#running.then(() => this.#run()).catch(this.#failed)
  }

  async #run(): Promise<void> {
    const sums = sumsOf(this.#left)
    this.#left = []
    if (sums.length === 0) return
    const sets = [sums.map(([dueAt]) => dueAt), sums.map(([, set]) => set)]
    const leases = sums.map(([, , of]) => of)
    await afterCommit(async () => {
      await this.#transactions.run(async (tx) => {
        tx.post(end, [...sets, leases])
        tx.post(shrink, [...sets, leases])
        tx.post(endShrunk, sets)
      })
    }, undefined)
  }
}

function sumsOf(sets: readonly string[]): [dueAt: string, set: string, leases: number][] {
  const sums = new Map<string, [string, string, number]>()
  for (const told of sets) {
    const [dueAt = '', set = '', leases] = told.split(' ')
    const sum = sums.get(set)
    if (sum === undefined) sums.set(set, [dueAt, set, Number(leases)])
    else sum[2] += Number(leases)
  }
  return [...sums.values()]
}

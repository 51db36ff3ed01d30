import { afterCommit } from './after-commit.ts'
import { statement } from './statement.ts'
import type { Transactions } from './transactions.ts'

const SETS = 'NOT delayed AND due_at = ANY ($1::bigint[]) AND number = ANY ($2::bigint[])'
const shrink = statement(
  'shrink-sets',
  `UPDATE baton.due SET remaining = remaining - ($3::int[])[array_position($2::bigint[], number)] WHERE ${SETS}`,
)
const end = statement('end-sets', `DELETE FROM baton.due WHERE ${SETS} AND remaining <= 0`)

/**
 * Takes leases that hand-offs have ended off their sets in `due`, in transactions that lock nothing else: nobody waits
 * for it, and it waits for nobody who waits. What comes meanwhile makes the next one. If this node dies before, sets
 * are left over.
 */
export class Shrinking {
  readonly #transactions: Transactions
  #left: string[] = []
  #running: Promise<void> | undefined

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  /** Sets as the statement told them: when they are due, their number, and how many leases of theirs have ended. */
  take(sets: readonly string[]): void {
    if (sets.length === 0) return
    this.#left.push(...sets)
    this.#running ??= this.#run()
  }

  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.#left.length > 0) {
      const sums = sumsOf(this.#left)
      this.#left = []
      await afterCommit(async () => {
        await this.#transactions.run(
          async (tx) => {
            tx.post(shrink, [
              sums.map(([dueAt]) => dueAt),
              sums.map(([, set]) => set),
              sums.map(([, , of]) => of),
            ])
            tx.post(end, [sums.map(([dueAt]) => dueAt), sums.map(([, set]) => set)])
          },
          { kind: 'relaxed' },
        )
      }, undefined)
    }
    this.#running = undefined
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

import { type Lane, type Partition, type Table, type Task, tableOf } from './state/memory-rows.ts'
import { type DoneWithin, doneWithin } from './throughput.ts'

/** The part of a transaction that is needed here. */
interface Changes {
  readonly now: number
  readonly number: number
  touchTask(task: Task): void
  touchLane(lane: Lane): void
}

/** What a transaction finishes: for the pace of tasks and tables, and the throughput history. */
export class FinishedWork {
  readonly partitions: { readonly table: Table; readonly task: Task; readonly records: number }[] = []
  readonly throughput: DoneWithin[] = []
  readonly #tx: Changes

  constructor(tx: Changes) {
    this.#tx = tx
  }

  add(partition: Partition): void {
    const tx = this.#tx
    const { parentLane: lane, recordCount } = partition
    const { parentTask: task } = lane
    tx.touchLane(lane)
    tx.touchTask(task)
    this.partitions.push({ table: tableOf(partition), task, records: recordCount })
    let done = lane.done
    if (done === null || lane.doneIn !== tx.number) {
      done = doneWithin(task.id, lane.level, tx.now)
      lane.done = done
      lane.doneIn = tx.number
      this.throughput.push(done)
    }
    done.partitions += 1
    done.records += recordCount
  }
}

import type { StoredPace } from '../stored.ts'
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
  /** The tables of the finished partitions, with their records. */
  readonly byTable: [Table, records: number][] = []
  readonly throughput: DoneWithin[] = []
  /** Tasks whose pace rows are deleted. */
  readonly paceOver: number[] = []
  readonly #pace = new Set<StoredPace>()
  readonly #tx: Changes

  constructor(tx: Changes) {
    this.#tx = tx
  }

  get pace(): StoredPace[] {
    return Array.from(this.#pace, (pace) => ({ ...pace }))
  }

  add(partition: Partition): void {
    const tx = this.#tx
    const { parentLane: lane, recordCount } = partition
    const { parentTask: task } = lane
    tx.touchLane(lane)
    tx.touchTask(task)
    this.byTable.push([tableOf(partition), recordCount])
    const second = Math.floor(tx.now / 1000)
    if (task.pace?.second !== second) task.pace = { task: task.id, second, partitions: 0, records: 0 }
    task.pace.partitions += 1
    task.pace.records += recordCount
    this.#pace.add(task.pace)
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

  forgetPace(task: Task): void {
    this.#tx.touchTask(task)
    task.pace = null
    this.paceOver.push(task.id)
  }
}

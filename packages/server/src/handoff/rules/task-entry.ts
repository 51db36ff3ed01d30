import type { LaneTags } from './fair-order.ts'
import type { Tallies } from './tally.ts'
import type { TaskFacts, TaskState } from './task-facts.ts'

/** A task as a store has it at hand while a transaction changes it. */
export interface TaskEntry extends Changing<Omit<TaskFacts, FixedFacts>>, Pick<TaskFacts, FixedFacts> {
  readonly id: number
  state: TaskState
}

type FixedFacts = 'taskId' | 'firstCallBackAt' | 'partitions' | 'records'

type Changing<Facts> = { -readonly [Fact in keyof Facts]: Facts[Fact] }

export interface LaneEntry extends LaneTags, Tallies {
  readonly id: number
  readonly task: TaskEntry
  readonly level: number
  parkedSkipped: boolean
  /** Of the finished partitions: those whose rows retention removed. */
  purged: number
  purgedRecords: number
}

import type { TaskFacts, TaskState } from './task-facts.ts'

/** A task while a transaction changes it. */
export interface TaskEntry extends Changing<Omit<TaskFacts, FixedFacts>>, Pick<TaskFacts, FixedFacts> {
  readonly id: number
  state: TaskState
}

type FixedFacts = 'taskId' | 'firstCallBackAt' | 'partitions' | 'records'

type Changing<Facts> = { -readonly [Fact in keyof Facts]: Facts[Fact] }

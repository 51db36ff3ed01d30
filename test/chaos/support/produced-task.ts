import type { PartitionDescriptor } from '@baton/protocol'

/** What is known of a task by those who called it back and gave orders about it. */
export class ProducedTask {
  readonly taskId: string
  /** Whether its levels wait for each other; said before the second of them is called back. */
  readonly hasBarrier: boolean
  /** By name, from the moment on when they are first sent. */
  readonly partitions = new Map<string, PartitionDescriptor>()
  /** Names of those whose call-back was answered. */
  readonly accepted = new Set<string>()
  /** How many partitions answers said were new, and whether some of these answers were lost. */
  saidToBeNew = 0
  lacksAnswers = false
  /** How many were answered as done. */
  done = 0
  /** From the answer to the pause until the order to resume is sent. */
  readonly pauses: { readonly from: number; readonly until: number }[] = []
  cancelSentAt: number | undefined
  cancelledAt: number | undefined
  /** One operator at a time: what they know of it would otherwise not be true. */
  isInHand = false

  constructor(taskId: string, hasBarrier: boolean) {
    this.taskId = taskId
    this.hasBarrier = hasBarrier
  }
}

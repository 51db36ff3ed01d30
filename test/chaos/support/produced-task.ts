import type { PartitionDescriptor } from '@baton/protocol'
import type { Exchange } from './asking.ts'

/** An array of descriptors and what was answered to it. */
export interface CalledBack {
  readonly descriptors: readonly PartitionDescriptor[]
  /** When it was first sent: it may be stored from then on. */
  readonly sentAt: number
  /** Those of its sendings that were answered with 200. */
  readonly accepted: Exchange[]
}

/** A pause, from the order to the answer to its end. */
export interface Pause {
  readonly sentAt: number
  /** From the answer to the pause until the order to resume is sent: it is paused for certain. */
  from: number
  until: number
  /** The answer to the order to resume: from then on it is not paused for certain. */
  resumedAt: number
}

/** What is known of a task by those who called it back and gave orders about it. */
export class ProducedTask {
  readonly taskId: string
  /** Whether its levels wait for each other; said before the second of them is called back. */
  readonly hasBarrier: boolean
  /** By name, from the moment on when they are first sent. */
  readonly partitions = new Map<string, PartitionDescriptor>()
  readonly arrays: CalledBack[] = []
  /** Names of those whose call-back was answered. */
  readonly accepted = new Set<string>()
  /** How many partitions answers said were new, and whether some of these answers were lost. */
  saidToBeNew = 0
  lacksAnswers = false
  /** How many were answered as done. */
  done = 0
  readonly pauses: Pause[] = []
  cancelSentAt: number | undefined
  cancelledAt: number | undefined
  /** One operator at a time: what they know of it would otherwise not be true. */
  isInHand = false

  constructor(taskId: string, hasBarrier: boolean) {
    this.taskId = taskId
    this.hasBarrier = hasBarrier
  }

  sending(descriptors: readonly PartitionDescriptor[]): CalledBack {
    const array = { descriptors, sentAt: Date.now(), accepted: [] }
    for (const partition of descriptors) this.partitions.set(partition.partition_name, partition)
    this.arrays.push(array)
    return array
  }

  answered({ descriptors, accepted }: CalledBack, exchange: Exchange): void {
    accepted.push(exchange)
    for (const { partition_name } of descriptors) this.accepted.add(partition_name)
  }
}

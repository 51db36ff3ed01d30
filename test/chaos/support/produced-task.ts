import type { PartitionDescriptor } from '@baton/protocol'
import type { Exchange } from './checked-client.ts'

/** An array of descriptors and the answers to it. */
export interface CalledBack {
  readonly descriptors: readonly PartitionDescriptor[]
  /** When it was first sent: it may be stored from then on. */
  readonly sentAt: number
  /** The attempts that were answered with 200. */
  readonly accepted: Exchange[]
}

/** A pause, from the request to pause until the answer to the resume. */
export interface Pause {
  readonly sentAt: number
  /** From the answer to the pause until the resume is sent: the task is certainly paused. */
  from: number
  until: number
  /** The answer to the resume: from then on the task is certainly not paused. */
  resumedAt: number
}

/** What its producers and operators know about a task. */
export class ProducedTask {
  readonly taskId: string
  /** Whether its levels have a barrier; set before the second of them is called back. */
  readonly hasBarrier: boolean
  /** By name, added when they are first sent. */
  readonly partitions = new Map<string, PartitionDescriptor>()
  readonly arrays: CalledBack[] = []
  /** Names of the partitions whose call-back was answered. */
  readonly accepted = new Set<string>()
  /** The number of partitions that answers reported as new, and whether some of these answers were lost. */
  saidToBeNew = 0
  lacksAnswers = false
  /** The number of partitions confirmed as done. */
  done = 0
  readonly pauses: Pause[] = []
  cancelSentAt: number | undefined
  cancelledAt: number | undefined
  /** Only one operator at a time, so that its knowledge about the task is correct. */
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

import { partitionName } from '@baton/protocol'
import type { EventFacts, StoredDelivery } from '../handoff/outbox.ts'

export const CLOUD_EVENT_TYPE = 'application/cloudevents+json; charset=utf-8'

/**
 * The event in the structured mode of CloudEvents 1.0. `sequence` is the CloudEvents extension of that name.
 */
export function cloudEvent({ event, taskId, at, message }: StoredDelivery, source: string) {
  return {
    specversion: '1.0' as const,
    id: message.id,
    source,
    type: message.type,
    subject: taskId,
    time: new Date(at).toISOString(),
    datacontenttype: 'application/json' as const,
    sequence: sequenceOf(event),
    data: { taskId, generation: message.generation, ...dataOf(taskId, message.facts) },
  }
}

/** As texts, these sort in the order of the events. */
export const sequenceOf = (event: number): string => String(event).padStart(16, '0')

/** With the field names of the wire format. */
function dataOf(taskId: string, facts: EventFacts): Record<string, unknown> {
  switch (facts.of) {
    case 'task': {
      const { partitions, records, reportedRecords, reportedDeclared, mismatched, attempts } = facts
      return {
        partitions,
        records: {
          ...records,
          reported: reportedRecords,
          reportedOf: reportedDeclared,
          mismatchedPartitions: mismatched,
        },
        attempts,
        firstCallBackAt: new Date(facts.firstCallBackAt).toISOString(),
        endedAt: new Date(facts.endedAt).toISOString(),
        durationSeconds: (facts.endedAt - facts.firstCallBackAt) / 1000,
      }
    }
    case 'level': {
      const { level, partitions, records } = facts
      return { priorityLevel: level, partitions, records }
    }
    case 'partition': {
      const { level, index, spelling, recordCount, attempts, reason } = facts
      return {
        partition_name: spelling ?? partitionName(taskId, level, index),
        priorityLevel: level,
        record_count: recordCount,
        attempts,
        reason,
      }
    }
  }
}

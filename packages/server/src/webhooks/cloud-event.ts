import type { StoredDelivery } from '../handoff/outbox.ts'

export const CLOUD_EVENT_TYPE = 'application/cloudevents+json; charset=utf-8'

/** An event as CloudEvents 1.0 has it, in structured mode. `sequence` is the extension of that name. */
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
    data: message.data,
  }
}

/** Compared as texts, they are in the order of the events. */
export const sequenceOf = (event: number): string => String(event).padStart(16, '0')

import { createHmac, randomBytes } from 'node:crypto'
import { partitionName } from '@baton/protocol'
import { type EventMessage, factsOf, type StoredDelivery } from '../handoff/outbox.ts'

export const CLOUD_EVENT_TYPE = 'application/cloudevents+json; charset=utf-8'

/** The structured mode of CloudEvents 1.0. `sequence` is the extension of that name. */
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
    data: { taskId, generation: message.generation, ...dataOf(taskId, message) },
  }
}

/** As texts, these sort in the order of the events. */
export const sequenceOf = (event: number): string => String(event).padStart(16, '0')

/** With the field names of the wire format. */
function dataOf(taskId: string, message: EventMessage): Record<string, unknown> {
  const facts = factsOf(message)
  switch (facts.of) {
    case 'task': {
      const { partitions, records, reportedRecords, reportedDeclared, mismatched, attempts } = facts
      const summary = {
        partitions,
        records: {
          ...records,
          reported: reportedRecords,
          reportedOf: reportedDeclared,
          mismatchedPartitions: mismatched,
        },
        attempts,
        firstCallBackAt: new Date(facts.firstCallBackAt).toISOString(),
      }
      if (message.type === 'task.paused') return { ...summary, because: facts.because }
      return {
        ...summary,
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

// Standard Webhooks: https://www.standardwebhooks.com

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
const SHORTEST_BYTES = 24
const LONGEST_BYTES = 64

export const newSigningSecret = (): string => `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`

/** Undefined if the secret is not in the format of Standard Webhooks. */
function keyOf(secret: string): Buffer | undefined {
  if (!secret.startsWith(PREFIX)) return undefined
  const text = secret.slice(PREFIX.length)
  const key = Buffer.from(text, 'base64')
  const isSame = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  return isSame && key.length >= SHORTEST_BYTES && key.length <= LONGEST_BYTES ? key : undefined
}

export const isSigningSecret = (secret: string): boolean => keyOf(secret) !== undefined

interface Signed {
  readonly id: string
  /** In seconds since the epoch. */
  readonly timestamp: number
  readonly body: string
}

/** The value of `webhook-signature`: one signature per secret, so that receivers can rotate theirs. */
export function signatureOf(secrets: readonly string[], { id, timestamp, body }: Signed): string {
  const signatures = secrets.flatMap((secret) => {
    const key = keyOf(secret)
    return key === undefined ? [] : [createHmac('sha256', key).update(`${id}.${timestamp}.${body}`)]
  })
  return signatures.map((hmac) => `v1,${hmac.digest('base64')}`).join(' ')
}

import { quoted } from '@baton/protocol/core'
import { UnsendableError } from './errors.ts'

export const taskPath = (taskId: string): string => `/tasks/${segment(taskId, 'task id')}`
export const tablePath = (table: string): string => `/tables/${segment(table, 'table name')}`
export const instancePath = (instanceId: string): string => `/instances/${segment(instanceId, 'instance id')}`
export const subscriptionPath = (id: string): string => `/subscriptions/${segment(id, 'subscription id')}`

/** The names refused here would make another path of a URL, so the service could not report the error. */
export function segment(name: string, what: string): string {
  if (name === '') throw new UnsendableError(`the ${what} must not be empty`)
  const refusal = `${quoted(name)} is not a valid ${what}: it `
  if (name === '.' || name === '..')
    throw new UnsendableError(`${refusal}cannot be used as a path segment of a URL`)
  try {
    return encodeURIComponent(name)
  } catch {
    throw new UnsendableError(`${refusal}contains a lone surrogate`)
  }
}

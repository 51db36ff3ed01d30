import type { PartitionState, TaskState } from '@baton/protocol'
import { partitionStates, taskStates } from '@baton/protocol/core'

/** Tasks of one state, or tasks with parked partitions. */
export type TaskFilter = TaskState | 'parked'

/**
 * The current view. It is stored in the hash of the URL, so that a link reproduces the view, and the service
 * serves one file for all views.
 */
export type Route =
  | { readonly page: 'overview'; readonly state: TaskFilter | null; readonly search: string }
  | {
      readonly page: 'task'
      readonly taskId: string
      readonly state: PartitionState | null
      readonly level: number | null
    }
  | { readonly page: 'instance'; readonly instanceId: string }
  | { readonly page: 'webhooks' }
  | { readonly page: 'subscription'; readonly subscriptionId: string }
  | { readonly page: 'unknown' }

export const overviewRoute: Route = { page: 'overview', state: null, search: '' }

export const taskFilters: readonly TaskFilter[] = [...taskStates, 'parked']

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const parameters = new URLSearchParams(query)
  const [kind, name, ...others] = path.split('/')
  if (others.length > 0) return { page: 'unknown' }
  if (kind === '' || kind === undefined) {
    const state = wordOf(parameters.get('state'), taskFilters)
    return { page: 'overview', state, search: parameters.get('search') ?? '' }
  }
  if (kind === 'webhooks' && name === undefined) return { page: 'webhooks' }
  const decoded = name === undefined ? undefined : decode(name)
  if (decoded === undefined || decoded === '') return { page: 'unknown' }
  if (kind === 'instances') return { page: 'instance', instanceId: decoded }
  if (kind === 'webhooks') return { page: 'subscription', subscriptionId: decoded }
  if (kind !== 'tasks') return { page: 'unknown' }
  const level = parameters.get('level')
  return {
    page: 'task',
    taskId: decoded,
    state: wordOf(parameters.get('state'), partitionStates),
    level: level !== null && /^\d{1,16}$/.test(level) ? Number(level) : null,
  }
}

export function hrefOf(route: Route): string {
  const parameters = new URLSearchParams()
  if (route.page === 'overview') {
    if (route.state !== null) parameters.set('state', route.state)
    if (route.search !== '') parameters.set('search', route.search)
    return withQuery('#/', parameters)
  }
  if (route.page === 'instance') return `#/instances/${encodeURIComponent(route.instanceId)}`
  if (route.page === 'webhooks') return '#/webhooks'
  if (route.page === 'subscription') return `#/webhooks/${encodeURIComponent(route.subscriptionId)}`
  if (route.page === 'unknown') return '#/'
  if (route.state !== null) parameters.set('state', route.state)
  if (route.level !== null) parameters.set('level', String(route.level))
  return withQuery(`#/tasks/${encodeURIComponent(route.taskId)}`, parameters)
}

/** The URL of a page without its filters. */
export function placeOf(route: Route): string {
  return hrefOf(route.page === 'task' ? { ...route, state: null, level: null } : route).split('?')[0] ?? ''
}

export const taskHref = (taskId: string): string => hrefOf({ page: 'task', taskId, state: null, level: null })

export const instanceHref = (instanceId: string): string => hrefOf({ page: 'instance', instanceId })

export const subscriptionHref = (subscriptionId: string): string =>
  hrefOf({ page: 'subscription', subscriptionId })

function withQuery(path: string, parameters: URLSearchParams): string {
  return parameters.size === 0 ? path : `${path}?${parameters}`
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function wordOf<Word extends string>(text: string | null, words: readonly Word[]): Word | null {
  return words.find((word) => word === text) ?? null
}

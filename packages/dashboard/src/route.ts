import type { InstanceState, PartitionState, TaskState } from '@baton/protocol'
import { instanceStates, partitionStates, taskStates } from '@baton/protocol/core'

/** Tasks of one state, or tasks with parked partitions. */
export type TaskFilter = TaskState | 'parked'

/** How far back a chart goes. */
export const spanNames = ['1h', '24h', '7d'] as const
export type SpanName = (typeof spanNames)[number]

export const fleetSorts = ['failed', 'pace', 'leases', 'name'] as const
export type FleetSort = (typeof fleetSorts)[number]

interface IndexRange {
  readonly first: number
  readonly last: number
}

/** Which partitions of a task are listed. */
export interface PartitionFilter {
  readonly state: PartitionState | null
  readonly level: number | null
  /** Of the level. */
  readonly indexes: IndexRange | null
  /** The start of the name. */
  readonly name: string
  readonly holder: string
  /** The key of a group of failures. */
  readonly reason: string
}

export interface TaskRoute extends PartitionFilter {
  readonly page: 'task'
  readonly taskId: string
  /** Null: as long as the task has been running. */
  readonly span: SpanName | null
}

export interface FleetRoute {
  readonly page: 'instances'
  readonly search: string
  readonly status: InstanceState | null
  readonly sort: FleetSort
}

/**
 * The current view. It is stored in the hash of the URL, so that a link reproduces the view, and the service
 * serves one file for all views.
 */
export type Route =
  | {
      readonly page: 'overview'
      readonly state: TaskFilter | null
      readonly search: string
      readonly span: SpanName
    }
  | TaskRoute
  | FleetRoute
  | { readonly page: 'instance'; readonly instanceId: string }
  | { readonly page: 'tables'; readonly search: string }
  | { readonly page: 'webhooks' }
  | { readonly page: 'subscription'; readonly subscriptionId: string }
  | { readonly page: 'unknown' }

export const overviewRoute = { page: 'overview', state: null, search: '', span: '1h' } as const
export const fleetRoute = { page: 'instances', search: '', status: null, sort: 'failed' } as const
export const tablesRoute = { page: 'tables', search: '' } as const

export const everyPartition: PartitionFilter = {
  state: null,
  level: null,
  indexes: null,
  name: '',
  holder: '',
  reason: '',
}

export const taskFilters: readonly TaskFilter[] = [...taskStates, 'parked']

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const given = new URLSearchParams(query)
  const text = (name: string) => given.get(name) ?? ''
  const [kind = '', name, ...others] = path.split('/')
  if (others.length > 0) return { page: 'unknown' }
  if (name === undefined) {
    switch (kind) {
      case '': {
        const state = wordOf(given.get('state'), taskFilters)
        return { page: 'overview', state, search: text('search'), span: spanOf(given) ?? '1h' }
      }
      case 'instances': {
        const status = wordOf(given.get('status'), instanceStates)
        const sort = wordOf(given.get('sort'), fleetSorts) ?? 'failed'
        return { page: 'instances', search: text('search'), status, sort }
      }
      case 'tables':
        return { page: 'tables', search: text('search') }
      case 'webhooks':
        return { page: 'webhooks' }
      default:
        return { page: 'unknown' }
    }
  }
  const decoded = decode(name)
  if (decoded === undefined || decoded === '') return { page: 'unknown' }
  if (kind === 'instances') return { page: 'instance', instanceId: decoded }
  if (kind === 'webhooks') return { page: 'subscription', subscriptionId: decoded }
  if (kind !== 'tasks') return { page: 'unknown' }
  const level = numberOf(given.get('level'))
  return {
    page: 'task',
    taskId: decoded,
    state: wordOf(given.get('state'), partitionStates),
    level,
    indexes: level === null ? null : rangeOf(given.get('indexes')),
    name: text('name'),
    holder: text('holder'),
    reason: text('reason'),
    span: spanOf(given),
  }
}

export function hrefOf(route: Route): string {
  switch (route.page) {
    case 'overview': {
      const { state, search, span } = route
      return withQuery('#/', { state, search, span: span === '1h' ? null : span })
    }
    case 'instances': {
      const { search, status, sort } = route
      return withQuery('#/instances', { search, status, sort: sort === 'failed' ? null : sort })
    }
    case 'tables':
      return withQuery('#/tables', { search: route.search })
    case 'instance':
      return `#/instances/${encodeURIComponent(route.instanceId)}`
    case 'webhooks':
      return '#/webhooks'
    case 'subscription':
      return `#/webhooks/${encodeURIComponent(route.subscriptionId)}`
    case 'unknown':
      return '#/'
    case 'task': {
      const { page: _page, taskId, indexes, level, ...filters } = route
      const range = indexes === null || level === null ? null : `${indexes.first}-${indexes.last}`
      return withQuery(`#/tasks/${encodeURIComponent(taskId)}`, { ...filters, level, indexes: range })
    }
  }
}

/** The URL of a page without its filters. */
export function placeOf(route: Route): string {
  return hrefOf(route).split('?')[0] ?? ''
}

/** A task, and which of its partitions are listed. */
export const taskHref = (taskId: string, filter: Partial<PartitionFilter> = {}): string =>
  hrefOf({ page: 'task', taskId, span: null, ...everyPartition, ...filter })

/** A partition in the list of its task. Its name says where it is. */
export function partitionHref(name: string): string {
  const [, taskId = name, level, index] = /^(.+)-(\d+)-(\d+)$/.exec(name) ?? []
  return taskHref(taskId, { level: Number(level), indexes: { first: Number(index), last: Number(index) } })
}

export const instanceHref = (instanceId: string): string => hrefOf({ page: 'instance', instanceId })

export const subscriptionHref = (subscriptionId: string): string =>
  hrefOf({ page: 'subscription', subscriptionId })

export function withQuery(
  path: string,
  filters: Readonly<Record<string, string | number | boolean | null | undefined>>,
): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters))
    if (value != null && value !== '') query.set(name, String(value))
  return query.size === 0 ? path : `${path}?${query}`
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

const spanOf = (given: URLSearchParams) => wordOf(given.get('span'), spanNames)

const numberOf = (text: string | null): number | null =>
  text !== null && /^\d{1,16}$/.test(text) ? Number(text) : null

function rangeOf(text: string | null): IndexRange | null {
  const [first, last] = (text ?? '').split('-', 2).map(numberOf)
  return first == null || last == null || last < first ? null : { first, last }
}

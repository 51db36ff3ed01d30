import { instanceStates, partitionStates } from '@baton/protocol/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  everyPartition,
  fleetSorts,
  hrefOf,
  overviewRoute,
  parseRoute,
  type Route,
  spanNames,
  taskFilters,
} from '../src/route.ts'

const text = fc.string({ minLength: 1, unit: 'binary' })
const orNull = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: null })

const routes: fc.Arbitrary<Route> = fc.oneof(
  fc.record({
    page: fc.constant('overview' as const),
    state: orNull(fc.constantFrom(...taskFilters)),
    search: fc.string(),
    span: fc.constantFrom(...spanNames),
  }),
  fc
    .record({
      page: fc.constant('task' as const),
      taskId: text,
      state: orNull(fc.constantFrom(...partitionStates)),
      level: orNull(fc.maxSafeNat()),
      indexes: orNull(fc.record({ first: fc.nat(99), last: fc.integer({ min: 99, max: 1000 }) })),
      name: fc.string(),
      holder: fc.string(),
      reason: fc.string(),
      span: orNull(fc.constantFrom(...spanNames)),
    })
    .map((route) => (route.level === null ? { ...route, indexes: null } : route)),
  fc.record({
    page: fc.constant('instances' as const),
    search: fc.string(),
    status: orNull(fc.constantFrom(...instanceStates)),
    sort: fc.constantFrom(...fleetSorts),
  }),
  fc.record({ page: fc.constant('tables' as const), search: fc.string() }),
  fc.record({ page: fc.constant('instance' as const), instanceId: text }),
  fc.constant({ page: 'webhooks' as const }),
  fc.record({ page: fc.constant('subscription' as const), subscriptionId: text }),
)

describe('a route of the page', () => {
  test('is parsed from its link unchanged, whatever the names', () => {
    fc.assert(
      fc.property(routes, (route) => {
        expect(parseRoute(hrefOf(route))).toEqual(route)
      }),
    )
  })

  test.each(['', '#', '#/'])('is the overview for %j', (hash) => {
    expect(parseRoute(hash)).toEqual(overviewRoute)
  })

  test.each(['#/tasks', '#/tasks/', '#/tasks/a/b', '#/tasks/%E0%A4%A', '#/nowhere/x'])(
    'is undefined for %s',
    (hash) => {
      expect(parseRoute(hash)).toEqual({ page: 'unknown' })
    },
  )

  test('ignores unknown parts', () => {
    expect(parseRoute('#/tasks/a?state=wrong&level=-1&indexes=2-1&span=1y')).toEqual({
      page: 'task',
      taskId: 'a',
      span: null,
      ...everyPartition,
    })
  })
})

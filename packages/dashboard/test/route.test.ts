import { partitionStates } from '@baton/protocol/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hrefOf, parseRoute, type Route, taskFilters } from '../src/route.ts'

const text = fc.string({ minLength: 1, unit: 'binary' })
const orNull = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: null })

const routes: fc.Arbitrary<Route> = fc.oneof(
  fc.record({
    page: fc.constant('overview' as const),
    state: orNull(fc.constantFrom(...taskFilters)),
    search: fc.string(),
  }),
  fc.record({
    page: fc.constant('task' as const),
    taskId: text,
    state: orNull(fc.constantFrom(...partitionStates)),
    level: orNull(fc.maxSafeNat()),
  }),
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
    expect(parseRoute(hash)).toEqual({ page: 'overview', state: null, search: '' })
  })

  test.each(['#/tasks', '#/tasks/', '#/tasks/a/b', '#/tasks/%E0%A4%A', '#/nowhere/x'])(
    'is undefined for %s',
    (hash) => {
      expect(parseRoute(hash)).toEqual({ page: 'unknown' })
    },
  )

  test('ignores unknown parts', () => {
    expect(parseRoute('#/tasks/a?state=wrong&level=-1')).toEqual({
      page: 'task',
      taskId: 'a',
      state: null,
      level: null,
    })
  })
})

import type { ProblemCode } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { asUnavailable } from '../../src/disk/sqlite/failures.ts'
import { problemExamples } from '../../src/http/api-document/api-problems.ts'
import { type Answer, descriptor, TestApp } from '../support/test-app.ts'

const taskId = 'orders-2026-03'
const part = (index: number, changed = {}) => descriptor(taskId, 0, index, changed)
const largest = { record_count: Number.MAX_SAFE_INTEGER }

/** How to cause each problem, on a service that has some partitions of one task. */
const meetings: Partial<Record<ProblemCode, (baton: TestApp) => Promise<Answer>>> = {
  body_not_json: (baton) =>
    baton.ask('POST', '/call-back', { headers: { 'content-type': 'application/json' }, raw: '[' }),
  bad_request: ({ get }) => get('/tasks/%zz'),
  unsupported_media_type: (baton) =>
    baton.ask('POST', '/call-back', { headers: { 'content-type': 'text/csv' }, raw: 'orders' }),
  body_too_large: (baton) =>
    baton.ask('POST', '/call-back', {
      headers: { 'content-type': 'application/json' },
      raw: Buffer.alloc(32 * 2 ** 20 + 1),
    }),
  contract_violation: ({ post }) =>
    post('/call-back', [part(0), part(1), part(2), part(3, { record_count: '5' })]),
  parameter_invalid: ({ get }) => get('/tasks?limit=0'),
  partition_conflict: ({ post }) =>
    post('/call-back', [part(0), part(1), part(2), part(3), part(7, { record_count: 120 })]),
  partition_unknown: ({ post }) =>
    post(`/tasks/${taskId}/retry`, { partitions: [`${taskId}-0-1`, `${taskId}-0-99`] }),
  task_cancelled: async ({ post }) => {
    await post(`/tasks/${taskId}/cancel`)
    return post('/call-back', [part(99)])
  },
  task_sealed: async ({ post }) => {
    await post(`/tasks/${taskId}/seal`)
    return post('/call-back', [part(99)])
  },
  task_finished: async ({ get, post }) => {
    const { body } = await get('/pull', { prefer: 'batch=100' })
    const leases: { lease: { id: string } }[] = body.partitions
    await post(
      '/settle',
      leases.map(({ lease }) => ({ leaseId: lease.id, outcome: 'done' })),
    )
    return post(`/tasks/${taskId}/pause`)
  },
  record_total_too_large: ({ post }) => post('/call-back', [part(99, largest)]),
  too_many_levels: ({ post }) =>
    post(
      '/call-back',
      Array.from({ length: 10_000 }, (_, at) => descriptor(taskId, at + 1, 0)),
    ),
  task_unknown: ({ get }) => get('/tasks/orders-2026-30'),
  instance_unknown: ({ get }) => get('/test/instance-status?instanceId=loader-99'),
  table_unknown: ({ get }) => get('/tables/analytics.order_result'),
  route_unknown: ({ get }) => get('/somewhere/else'),
  method_not_allowed: (baton) => baton.ask('DELETE', '/pull'),
  cross_site_refused: ({ get }) => get('/pull', { 'sec-fetch-site': 'cross-site' }),
  host_refused: ({ get }) => get('/pull', { host: 'elsewhere.example' }),
  shutting_down: ({ app, get }) => {
    app.handOff.drain()
    return get('/readyz')
  },
}

const tokens = {
  tokens: [
    { name: 'loaders', token: tokenNamed('worker'), roles: ['worker'] },
    { name: 'sales', token: tokenNamed('sales'), roles: ['operator'], tasks: ['sales-'] },
  ],
}
const refused: Partial<Record<ProblemCode, string | undefined>> = {
  token_missing: undefined,
  token_unknown: `Bearer ${tokenNamed('other')}`,
  token_refused: `Bearer ${tokenNamed('worker')}`,
  token_limited: `Bearer ${tokenNamed('sales')}`,
}

describe('the examples of problems match real answers', () => {
  test.each(Object.keys(meetings) as (keyof typeof meetings)[])('%s', async (code) => {
    const baton = await TestApp.open()
    await baton.callBack(...[0, 1, 2, 3, 7].map((index) => part(index)))
    expect((await meetings[code]?.(baton))?.body).toEqual(problemExamples[code])
  })

  test.each(Object.entries(refused))('%s', async (code, authorization) => {
    const baton = await TestApp.open({ tokensFile: await tokensFile(tokens) })
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
    const { body } = await baton.post(`/tasks/${taskId}/pause`, undefined, headers)
    expect(body).toEqual(problemExamples[code as ProblemCode])
  })

  test('store_unavailable, as worded by the embedded store', () => {
    expect(asUnavailable({ errcode: 10 })?.message).toBe(problemExamples.store_unavailable.detail)
  })
})

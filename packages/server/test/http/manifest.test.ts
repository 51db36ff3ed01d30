import { problemSchema } from '@baton/protocol'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { emptyTally } from '../../src/handoff/rules/task.ts'
import { noTokens } from '../../src/http/admission/tokens.ts'
import type { RouteContext } from '../../src/http/route-context.ts'
import { manifestRoute } from '../../src/http/routes/manifest-route.ts'

const facts = { taskId: 'orders', purgedAt: null as number | null, generation: 1, partitions: emptyTally() }
const line = {
  ...{ level: 0, index: 0, spelling: null, computeTableName: 'results.orders', recordCount: 1 },
  ...{ state: 'done', attempts: 1, holder: null, dueAt: null, reason: null, reportedRecords: null },
  ...{ calledBackAt: 0, settledAt: 0, leasedAt: 0, outcome: 'done', history: null },
}

test.each([
  { name: 'is purged', change: { purgedAt: 1 } },
  { name: 'is purged and reopened', change: { generation: 2 } },
])('a manifest is aborted if the task $name between two pages', async ({ change }) => {
  const pages = [
    { facts, partitions: [line], next: { level: 0, index: 0 } },
    { facts: { ...facts, ...change }, partitions: [], next: null },
  ]
  const handOff = { views: { partitions: async () => pages.shift() } }
  const app = Fastify()
  app.addSchema({ ...problemSchema, $id: 'Problem' })
  onTestFinished(() => app.close())
  const service = { handOff, tableField: 'computeTableName', tokens: noTokens } as unknown as RouteContext
  manifestRoute(app, service, (_request, read) => read())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const answer = await fetch(`${url}/tasks/orders/manifest`)
  expect(answer.status).toBe(200)
  await expect(answer.text()).rejects.toThrow()
})

import { expect, test } from 'vitest'
import {
  type Actor,
  type ApiDocument,
  type Route,
  routesOf,
} from '../../packages/dashboard/src/reference/api-document.ts'
import { inlined } from '../../packages/dashboard/src/reference/inlined.ts'
import { commandOf, sampleOf } from '../../packages/dashboard/src/reference/sample.ts'
import { TestApp } from '../../packages/server/test/support/test-app.ts'

const actors: readonly Actor[] = ['producer', 'worker', 'operator', 'anyone']

async function openReference() {
  const baton = await TestApp.open()
  const document = inlined((await baton.get('/openapi.json')).body as ApiDocument)
  const routes = actors.flatMap((actor) => routesOf(document, actor))
  const send = async (route: Route) => {
    const { method, url, headers, body } = sampleOf(route, '')
    return baton.ask(method, url, {
      headers: Object.fromEntries(headers),
      ...(body === undefined ? {} : { raw: body }),
    })
  }
  return { baton, routes, send }
}

test('the samples of the reference work when they are sent as they are', async () => {
  const { baton, routes, send } = await openReference()
  const named = (id: string) => routes.find(({ operation }) => operation.operationId === id) as Route
  const ids = [
    'callBack',
    'pull',
    'settle',
    'renew',
    'viewTask',
    'listPartitions',
    'viewScale',
    'instanceStatus',
  ]
  for (const id of ids) expect([id, (await send(named(id))).status]).toEqual([id, 200])
  // The first sample that one tries has no lasting effect but its partitions.
  expect((await baton.get('/tasks/orders-2026-03')).body).toMatchObject({ sealed: false })
})

test('no sample is malformed', async () => {
  const { routes, send } = await openReference()
  const sent = routes.filter(({ operation }) => operation.operationId !== 'followEvents')
  expect(sent.length).toBeGreaterThan(30)
  for (const route of sent) {
    const { status, body } = await send(route)
    expect([route.operation.operationId, [400, 415, 422].includes(status) ? body : 'ok']).toEqual([
      route.operation.operationId,
      'ok',
    ])
  }
})

test('a command quotes what a shell would read', () => {
  const sample = { method: 'POST', url: '/a?b=c', headers: [['X-A', "it's"]] as const, body: '{}' }
  expect(commandOf(sample)).toBe("curl -X POST '/a?b=c' \\\n  -H 'X-A: it'\\''s' \\\n  -d '{}'")
})

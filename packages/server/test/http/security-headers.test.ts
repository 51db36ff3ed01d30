import { expect, test } from 'vitest'
import { servedRoutes } from '../../../../test/docs/support/routes.ts'
import { listening, postBytes, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const leaseState = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}
const strictest = { ...leaseState, 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" }

test('every route answers with security headers, and over plain HTTP without HSTS', async () => {
  const baton = await TestApp.open()
  await baton.callBack(...descriptors('orders', 2))
  const base = `http://127.0.0.1:${await listening(baton.app)}`
  const { routes } = await servedRoutes()
  for (const route of [...routes, 'GET /nowhere', 'DELETE /pull', 'GET /tasks/%ff', 'HEAD /pull']) {
    const [method = '', path = ''] = route.split(' ')
    const ending = new AbortController()
    const url = `${base}${path.replaceAll(/\{\w+\}/g, 'orders')}`
    const { headers } = await fetch(url, { method, signal: ending.signal })
    const found = Object.fromEntries(headers)
    ending.abort()
    expect([route, found]).toEqual([route, expect.objectContaining(leaseState)])
    expect([route, found['content-security-policy']]).toEqual([
      route,
      expect.stringContaining("frame-ancestors 'none'"),
    ])
    expect([route, found['strict-transport-security']]).toEqual([route, undefined])
    const isPage = ['GET /', 'GET /docs'].includes(route)
    if (!isPage) expect([route, found]).toEqual([route, expect.objectContaining(strictest)])
    if (!isPage && route !== 'GET /openapi.json')
      expect([route, found['cache-control']]).toEqual([route, 'no-store'])
  }
})

test.each([
  ['past Fastify', ''],
  ['through Fastify', '?'],
])('pulls and settles have security headers %s', async (_, query) => {
  const baton = await TestApp.open()
  await baton.callBack(...descriptors('orders', 2))
  const client = await RawConnection.open(await listening(baton.app))
  const asked = async (bytes: string) => {
    client.send(bytes.replace(/ (\/\w+) /, ` $1${query} `))
    const answer = await client.answer()
    expect(answer.headers).toMatchObject({ ...strictest, 'cache-control': 'no-store' })
    return answer.status
  }
  const settle = (body: string) => postBytes('/settle', body)
  expect(await asked(pullBytes())).toBe(200)
  expect(await asked(pullBytes({ 'Idempotency-Key': 'x'.repeat(300) }))).toBe(422)
  expect(await asked(settle('[{"leaseId":"1-1-aaaaaaaaaaaaaaaa","outcome":"done"}]'))).toBe(200)
  expect(await asked(settle('[]'))).toBe(422)
  expect(await asked(settle('[nonsense]'))).toBe(400)
})

test('an invalid request is answered with security headers, too', async () => {
  const baton = await TestApp.open()
  const client = await RawConnection.open(await listening(baton.app))
  client.send('NONSENSE\r\n\r\n')
  const { status, headers } = await client.answer()
  expect(status).toBe(400)
  expect(headers).toMatchObject(strictest)
})

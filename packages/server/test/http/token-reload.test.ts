import { rename, rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { bearer, tokenNamed, tokensFile, writeTokens } from '../../../../test/support/tokens-file.ts'
import { EventStream } from '../support/event-stream.ts'
import { listening, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

const entry = (name: string, role: string, token = tokenNamed(name)) => ({ name, token, roles: [role] })

const before = [
  entry('fleet', 'worker'),
  entry('fleet', 'worker', tokenNamed('next')),
  entry('screen', 'viewer'),
  entry('wall', 'viewer'),
  entry('ops', 'operator'),
]

/** A service with a way to wait for log lines of a level. */
async function guarded(
  level: 'info' | 'warn' | 'error',
  isMeant: (fields: Record<string, unknown>) => boolean,
) {
  const path = await tokensFile({ tokens: before })
  const logged = Promise.withResolvers<Record<string, unknown>>()
  const log = {
    ...quiet,
    [level]: (fields: Record<string, unknown>) => {
      if (isMeant(fields)) logged.resolve(fields)
    },
  }
  const baton = await TestApp.open({ tokensFile: path }, { log })
  const port = await listening(baton.app)
  return { baton, path, port, url: `http://127.0.0.1:${port}`, logged: logged.promise }
}

const isReload = ({ audit, kind }: Record<string, unknown>) => audit === true && kind === 'reload'

test('a token that is removed stops working, with all its open requests', async () => {
  const { baton, path, port, url, logged } = await guarded('info', isReload)
  const removed = await RawConnection.open(port)
  removed.send(pullBytes(bearer(tokenNamed('fleet'))))
  expect((await removed.answer()).status).toBe(200)
  const waiting = await RawConnection.open(port)
  waiting.send(pullBytes({ ...bearer(tokenNamed('fleet')), Prefer: 'wait=60' }))
  const wall = await EventStream.open(url, bearer(tokenNamed('wall')))
  const screen = await EventStream.open(url, bearer(tokenNamed('screen')))
  const rotated = await RawConnection.open(port)
  rotated.send(pullBytes({ ...bearer(tokenNamed('next')), Prefer: 'wait=1' }))
  // Written to another file and renamed, as deployments do.
  const kept = before.filter(({ name, token }) => name !== 'wall' && token !== tokenNamed('fleet'))
  await writeTokens(`${path}.new`, { tokens: [...kept, entry('night', 'viewer')] })
  await rename(`${path}.new`, path)

  expect((await waiting.answer()).body).toMatchObject({ status: 401, code: 'token_unknown' })
  await wall.ended
  expect(await logged).toEqual({
    audit: true,
    kind: 'reload',
    name: null,
    address: null,
    action: 'tokens file',
    outcome: 'done',
    detail: 'new: night; removed: wall; changed: fleet',
  })
  // The fast path had admitted this head before.
  removed.send(pullBytes(bearer(tokenNamed('fleet'))))
  expect((await removed.answer()).body).toMatchObject({ status: 401, code: 'token_unknown' })
  expect((await baton.get('/tasks', bearer(tokenNamed('wall')))).status).toBe(401)
  // The other token of the same name, and other streams, are not affected.
  expect((await rotated.answer()).status).toBe(200)
  expect((await baton.get('/tasks', bearer(tokenNamed('night')))).status).toBe(200)
  let hasEnded = false
  void screen.ended.then(() => {
    hasEnded = true
  })
  await baton.get('/livez')
  expect(hasEnded).toBe(false)
})

test('a token that is removed while its request body arrives has no rights left', async () => {
  const { baton, path, port, url } = await guarded('info', isReload)
  const limited = { ...entry('compute', 'producer'), tasks: ['sales-'] }
  await writeTokens(path, { tokens: [...before, limited] })
  const wall = await EventStream.open(url, bearer(tokenNamed('wall')))
  const body = JSON.stringify([descriptor('stock', 0, 1)])
  const client = await RawConnection.open(port)
  const isKnown = async () => (await baton.get('/tasks/sales-1', bearer(limited.token))).status === 404
  while (!(await isKnown())) await new Promise((resolve) => setTimeout(resolve, 50))
  client.send(
    `POST /call-back HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${limited.token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  )
  // With 100 Continue it is admitted.
  expect((await client.answer()).status).toBe(100)
  await writeTokens(path, { tokens: before.filter(({ name }) => name !== 'wall') })
  await wall.ended
  client.send(body)
  expect((await client.answer()).body).toMatchObject({ status: 401, code: 'token_unknown' })
})

test('a token whose rights change has to reconnect', async () => {
  const { baton, path, url } = await guarded('info', isReload)
  const screen = await EventStream.open(url, bearer(tokenNamed('screen')))
  const limited = before.map((token) => (token.name === 'screen' ? { ...token, tasks: ['sales-'] } : token))
  await writeTokens(path, { tokens: limited })
  await screen.ended
  const { body } = await baton.get('/tasks/orders', bearer(tokenNamed('screen')))
  expect(body.code).toBe('token_limited')
})

test.each([
  ['is not JSON', '{"tokens":'],
  [
    'has a role that does not exist',
    { tokens: [{ name: 'ops', token: tokenNamed('ops'), roles: ['admin'] }] },
  ],
  ['has a weak token', { tokens: [{ name: 'ops', token: 'secret-1', roles: ['operator'] }] }],
])('a new file that %s leaves the previous tokens in use', async (_, content) => {
  const { baton, path, logged } = await guarded('error', () => true)
  await writeTokens(path, content)
  const { faults } = (await logged) as { faults: string[] }
  expect(faults.join()).toContain(path)
  expect(faults.join()).not.toContain('secret-1')
  expect((await baton.get('/tasks', bearer(tokenNamed('ops')))).status).toBe(200)
  const { body } = await baton.get('/audit/node', bearer(tokenNamed('ops')))
  expect(body.entries).toMatchObject([{ kind: 'reload', action: 'tokens file', outcome: 'refused' }])
  // Once it is valid again, it is used.
  await writeTokens(path, { tokens: before.filter(({ name }) => name !== 'ops') })
  while ((await baton.get('/tasks', bearer(tokenNamed('ops')))).status === 200)
    await new Promise((resolve) => setTimeout(resolve, 100))
})

test('a missing file leaves the previous tokens in use', async () => {
  const { baton, path, logged } = await guarded('error', () => true)
  await rm(path)
  expect(await logged).toEqual({ faults: [`the tokens file ${path} cannot be read (ENOENT)`] })
  expect((await baton.get('/tasks', bearer(tokenNamed('ops')))).status).toBe(200)
})

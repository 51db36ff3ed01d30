import { expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { listening, postBytes, RawConnection } from '../support/raw-connection.ts'
import { TestApp } from '../support/test-app.ts'

test.each([
  ['on the fast path', true],
  ['without the fast path', false],
])('with --log-level debug each request is a line, %s', async (_, fastPath) => {
  const lines: object[] = []
  const log = { ...quiet, debug: (fields: object) => lines.push(fields) }
  const baton = await TestApp.open({ fastPath, logLevel: 'debug' }, { log })
  const connection = await RawConnection.open(await listening(baton.app))
  connection.send('GET /pull HTTP/1.1\r\nHost: localhost\r\nX-Instance-Id: w-1\r\n\r\n')
  await connection.answer()
  connection.send(postBytes('/settle', '{"no":"array"}'))
  await connection.answer()
  await expect.poll(() => lines).toHaveLength(2)
  expect(lines).toEqual([
    {
      method: 'GET',
      url: '/pull',
      status: 200,
      millis: expect.any(Number),
      address: '127.0.0.1',
      scheme: 'http',
      instance: 'w-1',
    },
    {
      method: 'POST',
      url: '/settle',
      status: 422,
      millis: expect.any(Number),
      address: '127.0.0.1',
      scheme: 'http',
    },
  ])
})

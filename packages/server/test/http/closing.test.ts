import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { listening, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

describe('closing', () => {
  const unfinished =
    'POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n['

  /** Waits until a request has reached the routes. */
  const begins = ({ app }: TestApp) => once(app.http.server, 'request')

  /** Both are read at once: when the first is answered, the second is in progress. */
  async function begun(baton: TestApp, request: string): Promise<RawConnection> {
    const client = await RawConnection.open(await listening(baton.app))
    client.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n${request}`)
    await client.answer()
    return client
  }

  test('answers waiting pulls with an empty answer that closes the connection', async () => {
    const baton = await TestApp.open()
    const client = await begun(baton, pullBytes({ Prefer: 'wait=60' }))
    const closing = baton.app.close()
    const answer = await client.answer()
    expect([answer.body, answer.headers['connection']]).toEqual([{ partitions: [] }, 'close'])
    await closing
    await client.closed()
  })

  test.each([
    ['a settle', 'POST /settle', '[{"leaseId":"unknown","outcome":"done"}]', 200],
    ['a renewal', 'POST /renew', '["unknown"]', 200],
    ['a probe', 'GET /readyz', '', 503],
  ])('still reads %s of a new connection', async (_, line, body, status) => {
    const baton = await TestApp.open()
    const port = await listening(baton.app)
    const other = await RawConnection.open(port)
    other.send(unfinished)
    await begins(baton)
    const closing = baton.app.close()
    const client = await RawConnection.open(port)
    // Idle connections are checked several times meanwhile.
    await pause(200)
    const fields = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    client.send(`${line} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n${body}`)
    const answer = await client.answer()
    expect([answer.status, answer.headers['connection']]).toEqual([status, 'close'])
    other.socket.destroy()
    await closing
  })

  test('answers a request that began earlier with Connection: close', async () => {
    const baton = await TestApp.open()
    const client = await RawConnection.open(await listening(baton.app))
    client.send(unfinished)
    await begins(baton)
    const closing = baton.app.close()
    client.send(`${' '.repeat(498)}]`)
    const answer = await client.answer()
    expect([answer.status, answer.headers['connection']]).toEqual([422, 'close'])
    await closing
  })

  test('does not wait for idle connections', async () => {
    const baton = await TestApp.open({}, { timeouts: { closeMillis: 3_600_000 } })
    const port = await listening(baton.app)
    const [kept, elsewhere] = [await RawConnection.open(port), await RawConnection.open(port)]
    kept.send(pullBytes())
    await kept.answer()
    elsewhere.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await elsewhere.answer()
    const began = performance.now()
    await baton.app.close()
    expect(performance.now() - began).toBeLessThan(900)
  })

  test.each([
    ['', true],
    [', without the fast path', false],
  ] as const)('does not wait for a silent connection%s', async (_, fastPath) => {
    const baton = await TestApp.open({ fastPath }, { timeouts: { closeMillis: 3_600_000 } })
    const silent = await RawConnection.open(await listening(baton.app))
    await baton.app.close()
    await silent.closed()
  })

  test('does not wait forever for a client that does not finish', async () => {
    const baton = await TestApp.open({}, { timeouts: { closeMillis: 50 } })
    const client = await begun(baton, unfinished)
    await baton.app.close()
    await client.closed()
  })

  test('releases the data folder', async () => {
    const first = await TestApp.open()
    await first.callBack(descriptor('orders', 0, 1))
    await first.app.close()
    const second = await TestApp.open({ data: first.config.data })
    expect(await second.pull()).toHaveLength(1)
  })
})

import { describe, expect, test } from 'vitest'
import { listening, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

describe('closing', () => {
  const unfinished =
    'POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n['

  /** Both are read in one go: once the first is answered, the second is under way. */
  async function begun(baton: TestApp, request: string): Promise<RawConnection> {
    const client = await RawConnection.open(await listening(baton.app))
    client.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n${request}`)
    await client.answer()
    return client
  }

  test('answers pulls that wait, empty and for the last time on their connection', async () => {
    const baton = await TestApp.open()
    const client = await begun(baton, pullBytes({ Prefer: 'wait=60' }))
    const closing = baton.app.close()
    const answer = await client.answer()
    expect([answer.body, answer.headers['connection']]).toEqual([{ partitions: [] }, 'close'])
    await closing
    await client.closed()
  })

  test('does not wait for ever for a client that does not finish', async () => {
    const baton = await TestApp.open({}, { timeouts: { closeMillis: 50 } })
    const client = await begun(baton, unfinished)
    await baton.app.close()
    await client.closed()
  })

  test('lets go of the data folder', async () => {
    const first = await TestApp.open()
    await first.callBack(descriptor('orders', 0, 1))
    await first.app.close()
    const second = await TestApp.open({ data: first.config.data })
    expect(await second.pull()).toHaveLength(1)
  })
})

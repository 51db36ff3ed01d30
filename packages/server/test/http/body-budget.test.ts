import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

const largest = 2 ** 18
const head = (length: number) =>
  `POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`

describe('large call-backs that are received at the same time', () => {
  /** Both are read in one go: once the first is answered, the second counts. */
  async function begun(port: number): Promise<RawConnection> {
    const client = await RawConnection.open(port)
    client.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n${head(largest)}`)
    await client.answer()
    return client
  }

  const body = JSON.stringify([descriptor('orders', 0, 1)]).padEnd(largest)

  test('are refused beyond eight of the largest size, until one is through', async () => {
    const baton = await TestApp.open({ bodyLimitMb: largest / 2 ** 20 })
    const port = await listening(baton.app)
    const [first] = await Promise.all(Array.from({ length: 8 }, () => begun(port)))
    const ninth = await RawConnection.open(port)
    ninth.send(head(largest) + body)
    const answer = await ninth.answer()
    expect([answer.status, answer.body.code, answer.headers['retry-after']]).toEqual([503, 'overloaded', '1'])
    first?.send(body)
    expect((await first?.answer())?.body.accepted).toBe(1)
    ninth.send(head(largest) + body)
    expect((await ninth.answer()).body.duplicates).toBe(1)
  })

  test('are no longer counted once their client is gone', async () => {
    const baton = await TestApp.open({ bodyLimitMb: largest / 2 ** 20 })
    const port = await listening(baton.app)
    const [first] = await Promise.all(Array.from({ length: 8 }, () => begun(port)))
    first?.socket.destroy()
    const headers = { 'content-type': 'application/json' }
    await until(async () => (await baton.ask('POST', '/call-back', { raw: body, headers })).status === 200)
  })

  test('do not keep small ones out', async () => {
    const baton = await TestApp.open({ bodyLimitMb: largest / 2 ** 20 })
    const port = await listening(baton.app)
    await Promise.all(Array.from({ length: 8 }, () => begun(port)))
    await baton.callBack(descriptor('orders', 0, 1))
  })
})

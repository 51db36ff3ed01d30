import { describe, expect, test } from 'vitest'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { descriptor, TestApp, until } from '../support/test-app.ts'

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

  test('are refused beyond eight of the largest size, until one is through', async () => {
    const baton = await TestApp.open({ bodyLimitMb: largest / 2 ** 20 })
    const port = await listening(baton.app)
    const clients = await Promise.all(Array.from({ length: 8 }, () => begun(port)))
    const ninth = await RawConnection.open(port)
    ninth.send(head(largest) + ' '.repeat(largest))
    const answer = await ninth.answer()
    expect([answer.status, answer.body.code, answer.headers['retry-after']]).toEqual([503, 'overloaded', '1'])

    const [finishing, leaving] = clients
    const body = JSON.stringify([descriptor('orders', 0, 1)]).padEnd(largest)
    finishing?.send(body)
    expect((await finishing?.answer())?.body.accepted).toBe(1)
    ninth.send(head(largest) + body)
    expect((await ninth.answer()).body.duplicates).toBe(1)

    leaving?.socket.destroy()
    await until(async () => (await baton.ask('POST', '/call-back', { raw: body, headers })).status === 200)
  })

  const headers = { 'content-type': 'application/json' }

  test('do not keep small ones out', async () => {
    const baton = await TestApp.open({ bodyLimitMb: largest / 2 ** 20 })
    const port = await listening(baton.app)
    await Promise.all(Array.from({ length: 8 }, () => begun(port)))
    await baton.callBack(descriptor('orders', 0, 1))
  })
})

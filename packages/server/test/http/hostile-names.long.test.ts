import { expect, test } from 'vitest'
import { dial, readUntil } from '../../../../test/support/hostile-client.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { callBack, expectServing } from '../support/hostile-bodies.ts'
import { descriptors } from '../support/test-app.ts'

/** Sends requests one after the other on each of some connections. */
async function send(port: number, count: number, requestOf: (at: number) => string): Promise<void> {
  let next = 0
  const client = async () => {
    const socket = await dial(port)
    while (next < count) {
      next += 1
      socket.write(requestOf(next))
      expect(await readUntil(socket, (text) => text.includes('}'))).toContain('HTTP/1.1 200')
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: 8 }, client))
}

/** All of the names of the test take more than 400 MB in memory. */
const smallHeap = { NODE_OPTIONS: '--max-old-space-size=200' }

test.each(['', 'table=results.orders&'])(
  'of pulls with long names that nobody has, and %j, a bounded part stays in memory',
  async (known) => {
    const service = await ServiceProcess.started([], undefined, smallHeap)
    await callBack(service.url, JSON.stringify(descriptors('orders', 5000)))
    const pull = (at: number) => {
      const names = Array.from({ length: 49 }, (_, of) => `table=a.${at}-${of}-`.padEnd(600, 'x'))
      return `GET /pull?${known}${names.join('&')} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    }
    await send(service.port, 4000, pull)
    await expectServing(service, 'after')
  },
)

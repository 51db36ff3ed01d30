import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { dial, postHead, statusOf } from '../../../../test/support/hostile-client.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { until } from '../../../../test/support/until.ts'
import { settingOf } from '../../src/config.ts'
import { expectServing, json, MIB, MOST_MEMORY, measured, reached } from '../support/hostile-bodies.ts'

/** The default limit, plus the quarter that is reserved for renews and settles. */
const RECEIVED_LIMIT = 1.25 * (settingOf('maxReceivedMb').default as number) * MIB

describe('bodies that arrive slowly', () => {
  test('are dropped when memory is short, those that hold most for longest first: 150 settles of 8 MiB', async () => {
    const service = await ServiceProcess.started()
    const slow = await Promise.all(Array.from({ length: 150 }, () => dial(service.port, '127.0.0.2')))
    const statuses: (number | undefined)[] = []
    for (const socket of slow) {
      void statusOf(socket).then((status) => statuses.push(status))
      socket.write(postHead('/settle', 8 * MIB))
    }
    const piece = Buffer.alloc(MIB / 2, ' ')
    const lease = JSON.stringify([{ leaseId: '1-1-aaaaaaaaaaaaaaaa', outcome: 'done' }])
    // A part of each at a time, and none completely: 75 MiB a round.
    for (let round = 0; round < 15 && statuses.length < 40; round += 1) {
      for (const socket of slow) if (socket.writable) socket.write(piece)
      const settled = await fetch(`${service.url}/settle`, { method: 'POST', headers: json, body: lease })
      expect(settled.status).toBe(200)
      expect(await measured(service, 'baton_received_bytes')).toBeLessThanOrEqual(RECEIVED_LIMIT)
      expect(await measured(service, 'baton_process_resident_memory_bytes')).toBeLessThan(MOST_MEMORY)
    }
    await until(() => statuses.length >= 40)
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(await reached(service, 'received-bytes')).toBeGreaterThanOrEqual(40)
    await expectServing(service, 'after')
    for (const socket of slow) socket.destroy()
    await until(async () => (await measured(service, 'baton_received_bytes')) === 0)
  })

  test('are bounded in bytes and in what the process keeps afterwards: 4,000 call-backs of 100 KB', async () => {
    const service = await ServiceProcess.started()
    const slow: Socket[] = []
    for (let of = 0; of < 40; of += 1) {
      const some = Array.from({ length: 100 }, () => dial(service.port, `127.0.0.${2 + (of % 4)}`))
      slow.push(...(await Promise.all(some)))
      for (const socket of slow.slice(-100))
        socket.write(postHead('/call-back', 200_000) + ' '.repeat(100_000))
      expect((await fetch(`${service.url}/livez`)).status).toBe(200)
      expect(await measured(service, 'baton_received_bytes')).toBeLessThanOrEqual(RECEIVED_LIMIT)
    }
    await until(async () => (await reached(service, 'received-bytes')) > 0)
    for (const socket of slow) socket.destroy()
    await until(async () => (await measured(service, 'baton_received_bytes')) === 0)
    expect(await measured(service, 'baton_process_resident_memory_bytes')).toBeLessThan(MOST_MEMORY)
    await expectServing(service, 'after')
  })

  test('of 4,000 clients at once leave a bounded amount of memory behind, which does not grow', async () => {
    const service = await ServiceProcess.started()
    for (let flood = 1; flood <= 4; flood += 1) {
      const slow: Socket[] = []
      for (let of = 0; of < 20; of += 1) {
        const some = Array.from({ length: 200 }, (_, at) => dial(service.port, `127.0.0.${2 + (at % 4)}`))
        slow.push(...(await Promise.all(some)))
      }
      const part = postHead('/call-back', 200_000) + ' '.repeat(100_000)
      for (const socket of slow) socket.resume().write(part)
      await until(async () => (await reached(service, 'received-bytes')) >= flood * 1000)
      for (const socket of slow) socket.destroy()
      await until(async () => (await measured(service, 'baton_received_bytes')) === 0)
      // docs/reliability.md has the figure.
      expect(await measured(service, 'baton_process_resident_memory_bytes')).toBeLessThan(1024 * MIB)
      expect(await measured(service, 'baton_process_heap_used_bytes')).toBeLessThan(200 * MIB)
    }
    await expectServing(service, 'after')
  })

  test('in chunks of one byte take no more memory than others', async () => {
    const service = await ServiceProcess.started([], undefined, {
      NODE_OPTIONS: '--max-old-space-size=128',
    })
    const slow = await Promise.all(Array.from({ length: 40 }, () => dial(service.port)))
    const head = postHead('/call-back', 0).replace('Content-Length: 0', 'Transfer-Encoding: chunked')
    const chunks = Buffer.from('1\r\n \r\n'.repeat(40_000))
    for (const socket of slow) socket.write(Buffer.concat([Buffer.from(head), chunks]))
    await until(async () => (await measured(service, 'baton_received_bytes')) === 40 * 40_000)
    await expectServing(service, 'after')
    for (const socket of slow) socket.destroy()
  })
})

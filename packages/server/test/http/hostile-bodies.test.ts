import { gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { dial, postHead, statusOf } from '../../../../test/support/hostile-client.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { until } from '../../../../test/support/until.ts'
import { JsonShape } from '../../src/http/bodies/json-shape.ts'
import {
  callBack,
  expectServing,
  json,
  MIB,
  MOST_MEMORY,
  measured,
  reached,
} from '../support/hostile-bodies.ts'
import { listening } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const LARGEST = 16 * MIB
const smallHeap = { NODE_OPTIONS: '--max-old-space-size=512' }

async function withSmallHeap(args: readonly string[] = []): Promise<ServiceProcess> {
  return ServiceProcess.started(args, undefined, smallHeap)
}

const filled = (unit: string, bytes: number) =>
  `[${unit.repeat(Math.floor((bytes - 16) / unit.length)).replace(/,$/, '')}]`

describe('a call-back of the largest size that takes many times its size in memory once parsed', () => {
  async function expectTooLarge(service: ServiceProcess, body: string, detail: string): Promise<void> {
    const answer = await callBack(service.url, body)
    expect([answer.status, await answer.json()]).toMatchObject([
      413,
      { code: 'body_too_large', detail: expect.stringContaining(detail) },
    ])
    await service.logged('a limit for clients was reached')
  }

  async function expectInvalid(service: ServiceProcess, body: string, detail: string): Promise<void> {
    const answer = await callBack(service.url, body)
    expect([answer.status, await answer.json()]).toMatchObject([
      422,
      { code: 'contract_violation', errors: [{ detail: expect.stringContaining(detail) }] },
    ])
  }

  test('is refused as it arrives if it has too many elements, or is too deep', async () => {
    const service = await withSmallHeap()
    for (const [unit, bytes] of [
      ['{},', LARGEST],
      ['[],', 2 * MIB],
      ['0,', 2 * MIB],
    ] as const)
      await expectTooLarge(service, filled(unit, bytes), 'more than 100,000 descriptors')
    await expectInvalid(service, '['.repeat(MIB), 'more than 16 levels deep')
    await expectServing(service, 'after')
  })

  test('is refused as it arrives if it has too many values, or an object too many fields', async () => {
    const service = await withSmallHeap()
    const fields = (count: number) => `{${'"":0,'.repeat(count - 1)}"a":0}`
    await expectTooLarge(service, filled(`${fields(100)},`, 8 * MIB), 'more than 1,000,000 values')
    await expectInvalid(service, `[${fields(1_000_001)}]`, 'at most 64 KiB')
    await expectServing(service, 'after')
  })

  test('is checked within all limits, whatever its objects look like', async () => {
    const service = await withSmallHeap()
    const random = (at: number) => ((at * 2_654_435_761) % 2 ** 32).toString(36)
    const objects = Array.from({ length: 99_999 }, (_, at) => `{"${random(at)}":0,"${random(at + 1)}":[1]}`)
    // Numbers that JavaScript rounds are parsed in a way that takes twice the memory.
    const rounded = '1.00000000000000000001'
    const answer = await callBack(service.url, `[${objects.join(',')},${rounded}]`)
    expect([answer.status, await answer.json()]).toMatchObject([422, { errorsOmitted: expect.any(Number) }])
    expect(await measured(service, 'baton_process_resident_memory_bytes')).toBeLessThan(MOST_MEMORY)
    await expectServing(service, 'after')
  })

  test('with more levels than it may have is refused', async () => {
    const service = await ServiceProcess.started()
    const levels = Array.from({ length: 20_000 }, (_, level) => ({
      taskId: 't',
      computeTableName: 'a.b',
      partition_name: `t-${level}-0`,
      record_count: 1,
      priorityLevel: level,
    }))
    const answer = await callBack(service.url, JSON.stringify(levels))
    const { errors } = (await answer.json()) as { errors: { pointer: string; detail: string }[] }
    expect([answer.status, errors]).toEqual([
      422,
      [{ pointer: '/10000/priorityLevel', detail: expect.stringContaining('at most 10000 different') }],
    ])
    expect(await reached(service, 'call-back-levels')).toBe(1)
    expect((await callBack(service.url, JSON.stringify(levels.slice(0, 10_000)))).status).toBe(200)
    await expectServing(service, 'after')
  })
})

describe('a body that is compressed', () => {
  test('is expanded, or refused when it is no gzip or breaks off', async () => {
    const { url } = await ServiceProcess.started()
    const body = gzipSync(JSON.stringify(descriptors('orders', 20_000)))
    const answer = await callBack(url, body, { 'content-encoding': 'gzip' })
    expect(await answer.json()).toMatchObject({ accepted: 20_000 })
    const settle = gzipSync(JSON.stringify([{ leaseId: '1-1-aaaaaaaaaaaaaaaa', outcome: 'done' }]))
    const headers = { ...json, 'content-encoding': 'gzip' }
    const settled = await fetch(`${url}/settle`, { method: 'POST', headers, body: settle })
    expect(await settled.json()).toMatchObject({ refused: [{ code: 'lease_unknown' }] })
    for (const damaged of [Buffer.from('[]'), gzipSync('[1,2,3]').subarray(0, 12)]) {
      const refused = await callBack(url, damaged, { 'content-encoding': 'gzip' })
      expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'body_not_json' }])
    }
  })

  test('is refused by its expanded size', async () => {
    const service = await withSmallHeap()
    const bomb = gzipSync(Buffer.alloc(128 * MIB, ' '))
    expect(bomb.length).toBeLessThan(MIB)
    const before = await measured(service, 'baton_process_resident_memory_bytes')
    for (const [path, length] of [
      ['/call-back', 4],
      ['/settle', 1],
      ['/renew', 1],
    ] as const) {
      const answers = Array.from({ length }, () =>
        fetch(service.url + path, {
          method: 'POST',
          headers: { ...json, 'content-encoding': 'gzip' },
          body: bomb,
        }),
      )
      for (const answer of await Promise.all(answers)) expect(answer.status).toBe(413)
    }
    const after = await measured(service, 'baton_process_resident_memory_bytes')
    expect(after - before).toBeLessThan(400 * MIB)
    await expectServing(service, 'after')
  })
})

describe('bodies that arrive slowly', () => {
  test('do not block other large call-backs', async () => {
    const service = await ServiceProcess.started()
    const slow = await Promise.all(Array.from({ length: 32 }, () => dial(service.port)))
    for (const socket of slow) socket.write(`${postHead('/call-back', LARGEST)}[`)
    await until(async () => (await measured(service, 'baton_received_bytes')) >= slow.length)
    const answer = await callBack(service.url, JSON.stringify(descriptors('orders', 50_000)))
    expect(await answer.json()).toMatchObject({ accepted: 50_000 })
    for (const socket of slow) socket.destroy()
    await until(async () => (await measured(service, 'baton_received_bytes')) === 0)
  })

  test('are dropped when there are too many bytes, those that hold most for longest first', async () => {
    const service = await ServiceProcess.started(['--max-received-mb', '8', '--body-limit-mb', '4'])
    const slow = await Promise.all(Array.from({ length: 20 }, () => dial(service.port)))
    const statuses: (number | undefined)[] = []
    for (const socket of slow) {
      void statusOf(socket).then((status) => statuses.push(status))
      socket.write(postHead('/settle', 2 * MIB))
    }
    for (const socket of slow) socket.write(Buffer.alloc(MIB, ' '))
    await until(() => statuses.length >= 10)
    expect(new Set(statuses)).toEqual(new Set([503]))
    // A quarter more is reserved for renews and settles.
    expect(await measured(service, 'baton_received_bytes')).toBeLessThanOrEqual(10 * MIB)
    expect(await reached(service, 'received-bytes')).toBeGreaterThanOrEqual(10)
    for (const socket of slow) socket.destroy()
    await until(async () => (await measured(service, 'baton_received_bytes')) === 0)
    await expectServing(service, 'after')
  })

  test('cost nothing but memory as long as they are small', async () => {
    const take = vi.spyOn(JsonShape.prototype, 'take')
    onTestFinished(() => take.mockRestore())
    const baton = await TestApp.open()
    const port = await listening(baton.app)
    const slow = await Promise.all(Array.from({ length: 20 }, () => dial(port)))
    for (const socket of slow) socket.write(`${postHead('/call-back', 60_000)}${' '.repeat(50_000)}`)
    const url = `http://localhost:${port}`
    await until(async () => (await measured({ url }, 'baton_received_bytes')) === 1_000_000)
    expect(take).not.toHaveBeenCalled()
    const [first] = slow
    first?.write('['.repeat(10_000))
    expect(first && (await statusOf(first))).toBe(400)
    expect(take.mock.calls.reduce((sum, [bytes]) => sum + bytes.length, 0)).toBe(60_000)
    for (const socket of slow) socket.destroy()
  })

  test('have a timeout', async () => {
    const service = await ServiceProcess.started(['--request-seconds', '0.5'])
    const slow = await dial(service.port)
    slow.write(`${postHead('/call-back', 100)}[`)
    expect(await statusOf(slow)).toBe(408)
    expect(await reached(service, 'request-time')).toBe(1)
  })
})

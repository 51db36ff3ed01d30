import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { dial, postHead, statusOf } from '../../../../test/support/hostile-client.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { until } from '../../../../test/support/until.ts'
import { settingOf } from '../../src/config.ts'
import { descriptors } from '../support/test-app.ts'

const MIB = 2 ** 20
const LARGEST = 16 * MIB
/** The default limit, plus the quarter that is reserved for renews and settles. */
const RECEIVED_LIMIT = 1.25 * (settingOf('maxReceivedMb').default as number) * MIB
/** The limit for the process with these bodies in it. docs/reliability.md has the figure. */
const MOST_MEMORY = 700 * MIB
const json = { 'content-type': 'application/json' }
const smallHeap = { NODE_OPTIONS: '--max-old-space-size=512' }

async function withSmallHeap(args: readonly string[] = []): Promise<ServiceProcess> {
  return ServiceProcess.started(args, undefined, smallHeap)
}

const callBack = (url: string, body: string | Buffer, headers = {}) =>
  fetch(`${url}/call-back`, { method: 'POST', headers: { ...json, ...headers }, body })

/** Checks that the service is alive and serves a producer and a worker. */
async function expectServing({ url }: ServiceProcess, task: string): Promise<void> {
  expect((await fetch(`${url}/livez`)).status).toBe(200)
  const answer = await callBack(url, JSON.stringify(descriptors(task, 4000)))
  expect(await answer.json()).toMatchObject({ accepted: 4000 })
  const pulled = (await (await fetch(`${url}/pull`)).json()) as { partitions: unknown[] }
  expect(pulled.partitions).toHaveLength(1)
}

async function measured({ url }: ServiceProcess, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1],
  )
}

const met = (service: ServiceProcess, bound: string) =>
  measured(service, `baton_bounds_met_total{bound="${bound}"}`)

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
    expect(await met(service, 'call-back-levels')).toBe(1)
    expect((await callBack(service.url, JSON.stringify(levels.slice(0, 10_000)))).status).toBe(200)
    await expectServing(service, 'after')
  })
})

describe('a body that is compressed', () => {
  test('is expanded', async () => {
    const { url } = await ServiceProcess.started()
    const body = gzipSync(JSON.stringify(descriptors('orders', 20_000)))
    const answer = await callBack(url, body, { 'content-encoding': 'gzip' })
    expect(await answer.json()).toMatchObject({ accepted: 20_000 })
    const settle = gzipSync(JSON.stringify([{ leaseId: '1-1-aaaaaaaaaaaaaaaa', outcome: 'done' }]))
    const headers = { ...json, 'content-encoding': 'gzip' }
    const settled = await fetch(`${url}/settle`, { method: 'POST', headers, body: settle })
    expect(await settled.json()).toMatchObject({ refused: [{ code: 'lease_unknown' }] })
  })

  test('is refused by its expanded size', async () => {
    const service = await withSmallHeap()
    const bomb = gzipSync(Buffer.alloc(128 * MIB, ' '))
    expect(bomb.length).toBeLessThan(MIB)
    const before = await measured(service, 'baton_process_resident_memory_bytes')
    for (const path of ['/call-back', '/settle', '/renew']) {
      const answers = Array.from({ length: 4 }, () =>
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

  test.each([
    ['is no gzip', Buffer.from('[]')],
    ['breaks off', gzipSync('[1,2,3]').subarray(0, 12)],
  ])('is refused when it %s', async (_, body) => {
    const { url } = await ServiceProcess.started()
    const answer = await callBack(url, body, { 'content-encoding': 'gzip' })
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([400, 'body_not_json'])
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
    expect(await met(service, 'received-bytes')).toBeGreaterThanOrEqual(40)
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
    await until(async () => (await met(service, 'received-bytes')) > 0)
    for (const socket of slow) socket.destroy()
    await until(async () => (await measured(service, 'baton_received_bytes')) === 0)
    expect(await measured(service, 'baton_process_resident_memory_bytes')).toBeLessThan(MOST_MEMORY)
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

  test('have a timeout', async () => {
    const service = await ServiceProcess.started(['--request-seconds', '0.5'])
    const slow = await dial(service.port)
    slow.write(`${postHead('/call-back', 100)}[`)
    expect(await statusOf(slow)).toBe(408)
    expect(await met(service, 'request-time')).toBe(1)
  })
})

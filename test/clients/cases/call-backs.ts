import { BatonClient, type ContractError, type PartitionDescriptor } from '@baton/client'
import { MAX_LEVELS_PER_CALL_BACK } from '@baton/protocol'
import { expect } from 'vitest'
import { descriptor, descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../../packages/client/test/support/faulty-network.ts'
import { rowsOf } from '../../../packages/client/test/support/partition-states.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { RestartableService } from '../../support/restartable-service.ts'
import { until } from '../../support/until.ts'
import type { Cases } from '../run-cases.ts'
import { failureOf } from './calls.ts'

export const callBacks: Cases = {
  'is one request when it fits, and a repeat changes nothing': async (client) => {
    const service = await startService()
    const command = { service, descriptors: descriptors('orders', 100) }
    expect(await client.produce(command)).toMatchObject({
      taskId: 'orders',
      accepted: 100,
      duplicates: 0,
      requests: 1,
    })
    expect(await client.produce(command)).toMatchObject({ accepted: 0, duplicates: 100, requests: 1 })
  },

  'is split by count, in order': async (client) => {
    const service = await startService()
    const options = { descriptorsPerRequest: 30 }
    const sent = descriptors('orders', 100)
    const receipt = await client.produce({ service, descriptors: sent, options })
    expect(receipt).toMatchObject({ accepted: 100, requests: 4, progress: [30, 60, 90, 100] })
    const { partitions } = await new BatonClient(service.url).pull({ batch: 100 })
    expect(partitions.map(({ partition_name }) => partition_name)).toEqual(
      sent.map(({ partition_name }) => partition_name),
    )
  },

  'is split by size, also where characters take several bytes': async (client) => {
    const service = await startService()
    const wide = descriptors('заказы-注文', 40)
    const bytes = new TextEncoder().encode(JSON.stringify(wide)).byteLength
    const options = { bytesPerRequest: Math.ceil(bytes / 3.5) }
    const receipt = await client.produce({ service, descriptors: wide, options })
    expect(receipt).toMatchObject({ accepted: 40, requests: 4 })
  },

  'is split where it names more levels than one request may, which is as many as a task may have': async (
    client,
  ) => {
    const service = await startService()
    const levels = Array.from({ length: MAX_LEVELS_PER_CALL_BACK + 2 }, (_, level) =>
      descriptor('orders', level, 0),
    )
    await expect(client.produce({ service, descriptors: levels })).rejects.toThrow('too many levels')
    expect(await new BatonClient(service.url).task('orders')).toMatchObject({
      partitions: { total: MAX_LEVELS_PER_CALL_BACK },
    })
  },

  'is sent in smaller requests to a service with a lower limit, and sealed by the last': async (client) => {
    const limits = [
      ['--body-limit-mb', '0.01'],
      ['--max-call-back-partitions', '90'],
    ]
    for (const limit of limits) {
      const service = await startService(...limit)
      const command = { service, descriptors: descriptors('orders', 500), stream: true, seal: true }
      const receipt = (await client.produce(command)) as { requests: number }
      expect(receipt).toMatchObject({ accepted: 500, duplicates: 0 })
      expect(receipt.requests).toBeGreaterThan(5)
      expect(await new BatonClient(service.url).task('orders')).toMatchObject({
        sealed: true,
        expectedPartitions: null,
        partitions: { total: 500 },
      })
    }
  },

  'of an iterable is sent while it yields': async (client) => {
    const service = await startService()
    const operator = new BatonClient(service.url)
    const producing = client.produce({
      service,
      descriptors: descriptors('orders', 35),
      stream: true,
      pauseAt: 25,
      options: { descriptorsPerRequest: 10 },
      seal: 35,
    })
    await until(() => client.eventsOf('producer').some(({ kind }) => kind === 'paused'))
    // With a seal to come, the last complete piece is held back.
    await until(async () => (await rowsOf(operator, 'orders')).length === 10)
    await client.open('producer')
    expect(await producing).toMatchObject({ accepted: 35, requests: 4 })
    expect(await operator.task('orders')).toMatchObject({ sealed: true, missingPartitions: 0 })
  },

  'whose answer is lost is repeated, and what was stored counts as duplicates': async (client) => {
    const service = await startService()
    const network = await FaultyNetwork.to(service.port)
    network.loseAnswers(2)
    const receipt = await client.produce({ service: network, descriptors: descriptors('orders', 20) })
    expect(network.lost).toBe(2)
    expect(receipt).toMatchObject({ accepted: 0, duplicates: 20 })
    expect(await rowsOf(new BatonClient(service.url), 'orders')).toHaveLength(20)
  },

  'waits for a service that was killed': async (client) => {
    const service = await RestartableService.start()
    await service.kill()
    const producing = client.produce({
      service: { url: service.url },
      descriptors: descriptors('orders', 20),
    })
    await until(() => client.eventsOf('producer').some(({ kind }) => kind === 'away'))
    await service.startAgain()
    expect(await producing).toMatchObject({ accepted: 20 })
    const [first] = client.eventsOf('producer').filter(({ kind }) => kind === 'away')
    expect(first).toMatchObject({ error: { name: 'UnreachableError' } })
  },

  'is checked before anything is sent': async (client) => {
    const service = await startService()
    const broken = descriptors('orders', 100).map((each, at) =>
      at === 77 ? { ...each, record_count: '5' as unknown as number } : each,
    )
    const options = { descriptorsPerRequest: 10 }
    expect(await failureOf(client.produce({ service, descriptors: broken, options }))).toMatchObject({
      name: 'ContractError',
      foundBy: 'client',
      violations: [{ pointer: '/77/record_count' }],
    })
    expect(await failureOf(client.call(service, 'task', 'orders'))).toMatchObject({ code: 'task_unknown' })
  },

  'has pointers into the whole iterable, across the pieces that were sent': async (client) => {
    const service = await startService()
    const endingWith = (last: PartitionDescriptor) =>
      failureOf(
        client.produce({
          service,
          descriptors: [...descriptors('orders', 24), last],
          stream: true,
          options: { descriptorsPerRequest: 10 },
        }),
      )
    const broken = [
      [{ ...descriptor('orders', 0, 24), priorityLevel: 1 }, '/24/partition_name'],
      [descriptor('orders', 0, 7), '/24/partition_name'],
      [descriptor('others', 0, 24), '/24/taskId'],
    ] as const
    for (const [last, pointer] of broken) {
      const failure = await endingWith(last)
      const { violations } = failure as unknown as ContractError
      expect(violations.map((violation) => violation.pointer)).toContain(pointer)
      expect(failure).toMatchObject({ stored: { sent: 20 } })
    }
    expect(await endingWith(descriptor('orders', 0, 22))).toMatchObject({
      violations: [{ detail: expect.stringContaining('names the same partition as /22:') }],
    })
  },

  'finds what the service finds, in the same words': async (client) => {
    const service = await startService()
    const operator = new BatonClient(service.url)
    for (const given of brokenCallBacks) {
      const body = given as PartitionDescriptor[]
      const found = await operator.callBack(body).catch((error: unknown) => error)
      const failure = await failureOf(client.produce({ service, descriptors: body }))
      expect(failure, JSON.stringify(given)).toMatchObject({ name: 'ContractError', foundBy: 'client' })
      expect(failure['violations']).toEqual((found as ContractError).violations)
    }
  },

  'may break a rule that only the service knows': async (client) => {
    const service = await startService()
    const noted = descriptors('orders', 1).map((each) => ({ ...each, note: 'x' }))
    const command = { service, descriptors: noted, options: { unknownFields: 'ignore' as const } }
    expect(await failureOf(client.produce(command))).toMatchObject({
      name: 'ContractError',
      foundBy: 'service',
    })
  },

  'that contradicts stored partitions names their position': async (client) => {
    const service = await startService()
    const options = { descriptorsPerRequest: 10 }
    await client.produce({ service, descriptors: descriptors('orders', 30), options })
    const changed = descriptors('orders', 30).map((each, at) =>
      at === 23 ? { ...each, record_count: 99 } : each,
    )
    expect(await failureOf(client.produce({ service, descriptors: changed, options }))).toMatchObject({
      name: 'ConflictError',
      conflicts: [{ pointer: '/23', partition_name: 'orders-0-23' }],
      stored: { sent: 20, accepted: 0, duplicates: 20 },
    })
  },
}

const fine = descriptor('a-1', 0, 0)
const { record_count: _, ...withoutCount } = fine

/** Arrays that break the contract. */
const brokenCallBacks: readonly unknown[] = [
  [],
  [1],
  [null],
  ['x'],
  [[]],
  [{}],
  [withoutCount],
  [{ ...withoutCount, recordcount: 5 }],
  [{ ...fine, note: 1 }],
  [{ ...fine, 'a~/b': 1, [`${'x'.repeat(300)}`]: 2 }],
  [{ ...fine, taskId: '' }],
  [{ ...fine, taskId: '..' }],
  [{ ...fine, taskId: 'a\u0000' }],
  [{ ...fine, taskId: 5 }],
  [{ ...fine, taskId: 'x'.repeat(1025) }],
  [{ ...fine, computeTableName: 'orders' }],
  [{ ...fine, computeTableName: 'a.b.c' }],
  [{ ...fine, computeTableName: ' .b' }],
  [{ ...fine, computeTableName: 'a.\u3000' }],
  [{ ...fine, computeTableName: 'a.b\n' }],
  [{ ...fine, computeTableName: null }],
  [{ ...fine, partition_name: 'b-1-0-0' }],
  [{ ...fine, partition_name: 'a-1-0' }],
  [{ ...fine, partition_name: 'a-1-0-x' }],
  [{ ...fine, partition_name: 'a-1-0-١' }],
  [{ ...fine, partition_name: 'a-1-0-0\n' }],
  [{ ...fine, partition_name: 'a-1-0-9007199254740992' }],
  [{ ...fine, partition_name: 'a-1-9007199254740992-0' }],
  [{ ...fine, partition_name: 'a-1-1-0' }],
  [{ ...fine, partition_name: `a-1-0-${'0'.repeat(2000)}` }],
  [{ ...fine, record_count: '5' }],
  [{ ...fine, record_count: -1 }],
  [{ ...fine, record_count: 1.5 }],
  [{ ...fine, record_count: true }],
  [{ ...fine, record_count: null }],
  [{ ...fine, record_count: [1] }],
  [{ ...fine, record_count: { a: 1 } }],
  [{ ...fine, record_count: 9_007_199_254_740_992 }],
  [{ ...fine, priorityLevel: '0' }],
  [{ ...fine, priorityLevel: false }],
  [fine, fine],
  [fine, { ...fine, partition_name: 'a-1-0-00' }],
  [fine, { ...descriptor('other', 0, 1) }],
  [descriptor('a', 1, 0), descriptor('a', 0, 0), descriptor('a', 1, 1)],
  [descriptor('a', 0, 0, 9_007_199_254_740_991), descriptor('a', 0, 1, 1), descriptor('a', 0, 2, 1)],
  Array.from({ length: 120 }, () => ({ ...fine, record_count: 'many' })),
  [{ priorityLevel: 'x', taskid: 'a', extra: 1, record_count: {}, partition_name: 7 }],
  [{ ...fine, record_count: `${'ä😀'.repeat(40)}` }],
]

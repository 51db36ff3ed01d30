import {
  BatonClient,
  ConflictError,
  ContractError,
  ProblemError,
  Producer,
  UnreachableError,
} from '@baton/client'
import { MAX_LEVELS_PER_CALL_BACK } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { RestartableService } from '../../../test/support/restartable-service.ts'
import { descriptor, descriptors } from './support/descriptors.ts'
import { FaultyNetwork } from './support/faulty-network.ts'
import { rowsOf } from './support/partition-states.ts'
import { sharedService, startService } from './support/service.ts'

const shared = sharedService()

describe('a call-back', () => {
  test('is one request when it fits, and a repeat changes nothing', async () => {
    const { url } = shared()
    const producer = new Producer(url)
    const first = await producer.callBack(descriptors('whole', 100))
    expect(first).toEqual({ taskId: 'whole', accepted: 100, duplicates: 0, requests: 1 })
    const again = await producer.callBack(descriptors('whole', 100))
    expect(again).toEqual({ taskId: 'whole', accepted: 0, duplicates: 100, requests: 1 })
  })

  test('is split by count, in order', async () => {
    const { url } = await startService()
    const sent: number[] = []
    const receipt = await new Producer(url, { descriptorsPerRequest: 30 }).callBack(
      descriptors('orders', 100),
      {
        onProgress: (progress) => sent.push(progress.sent),
      },
    )
    expect(receipt).toEqual({ taskId: 'orders', accepted: 100, duplicates: 0, requests: 4 })
    expect(sent).toEqual([30, 60, 90, 100])
    const { partitions } = await new BatonClient(url).pull({ batch: 100 })
    expect(partitions.map(({ partition_name }) => partition_name)).toEqual(
      descriptors('orders', 100).map(({ partition_name }) => partition_name),
    )
  })

  test('is split by size, also where characters take several bytes', async () => {
    const { url } = shared()
    const wide = descriptors('заказы-注文', 40)
    const bytes = new TextEncoder().encode(JSON.stringify(wide)).byteLength
    const receipt = await new Producer(url, { bytesPerRequest: Math.ceil(bytes / 3.5) }).callBack(wide)
    expect(receipt).toMatchObject({ accepted: 40, requests: 4 })
  })

  test('is split where it names more levels than one request may', async () => {
    const { url } = shared()
    const levels = Array.from({ length: MAX_LEVELS_PER_CALL_BACK + 2 }, (_, level) => ({
      taskId: 'many-levels',
      computeTableName: 'a.b',
      partition_name: `many-levels-${level}-0`,
      record_count: 1,
      priorityLevel: level,
    }))
    const receipt = await new Producer(url).callBack(levels)
    expect(receipt).toMatchObject({ accepted: levels.length, requests: 2 })
  })

  test.each([
    ['size', '--body-limit-mb', '0.01'],
    ['number of descriptors', '--max-call-back-partitions', '90'],
  ])('is sent in smaller requests to a service with a lower limit of the %s', async (_of, ...limit) => {
    const { url } = await startService(...limit)
    const receipt = await new Producer(url).callBack(descriptors('orders', 500))
    expect(receipt).toMatchObject({ accepted: 500, duplicates: 0 })
    expect(receipt.requests).toBeGreaterThan(5)
  })

  test('may come from a generator, and is sent while it is generated', async () => {
    const { url } = shared()
    const client = new BatonClient(url)
    const producer = new Producer(client, { descriptorsPerRequest: 10 })
    let seenInTheMiddle = 0
    async function* computed() {
      for (const [at, each] of descriptors('streamed', 35).entries()) {
        if (at === 25) seenInTheMiddle = (await rowsOf(client, 'streamed')).length
        yield each
      }
    }
    expect(await producer.callBack(computed())).toMatchObject({ accepted: 35, requests: 4 })
    expect(seenInTheMiddle).toBe(20)
  })

  test('whose answer is lost is repeated, and what was stored counts as duplicates', async () => {
    const service = await startService()
    const network = await FaultyNetwork.to(service.port)
    network.loseAnswers(2)
    const receipt = await new Producer(network.url).callBack(descriptors('orders', 20))
    expect(network.lost).toBe(2)
    expect(receipt).toMatchObject({ accepted: 0, duplicates: 20 })
    expect(await rowsOf(new BatonClient(service.url), 'orders')).toHaveLength(20)
  })

  test('waits for an unavailable service', async () => {
    const service = await RestartableService.start()
    await service.kill()
    const failures: string[] = []
    const sending = new Producer(service.url).callBack(descriptors('orders', 20), {
      onFailure: ({ error }) => {
        failures.push(error.name)
        if (failures.length === 1) void service.startAgain()
      },
    })
    expect(await sending).toMatchObject({ accepted: 20 })
    expect(failures[0]).toBe('UnreachableError')
  })

  test('gives up in the end', async () => {
    const service = await RestartableService.start()
    await service.kill()
    const sending = new Producer(service.url, { retryForSeconds: 0 }).callBack(descriptors('orders', 2))
    await expect(sending).rejects.toThrow(UnreachableError)
  })
})

describe('an error in a call-back', () => {
  test('is found before anything is sent, with a pointer to each violation', async () => {
    const { url } = shared()
    const broken = descriptors('broken', 100).map((each, at) =>
      at === 77 ? { ...each, record_count: '5' as unknown as number } : each,
    )
    const error = await failureOf(new Producer(url, { descriptorsPerRequest: 10 }).callBack(broken))
    expect(error).toBeInstanceOf(ContractError)
    expect(error).toMatchObject({ foundBy: 'client', violations: [{ pointer: '/77/record_count' }] })
    await expect(new BatonClient(url).task('broken')).rejects.toMatchObject({ code: 'task_unknown' })
  })

  test('points into the whole stream, across the pieces that were sent', async () => {
    const { url } = shared()
    const producer = new Producer(url, { descriptorsPerRequest: 10 })
    const streamOf = async function* (last: ReturnType<typeof descriptor>) {
      yield* descriptors('pointed', 24)
      yield last
    }
    const cases = [
      [{ ...descriptor('pointed', 0, 24), priorityLevel: 1 }, '/24/partition_name'],
      [descriptor('pointed', 0, 7), '/24/partition_name'],
      [descriptor('others', 0, 24), '/24/taskId'],
    ] as const
    for (const [last, pointer] of cases) {
      const error = (await failureOf(producer.callBack(streamOf(last)))) as ContractError
      expect(error.violations.map((violation) => violation.pointer)).toContain(pointer)
      expect(error.stored?.sent).toBe(20)
    }
    const twice = (await failureOf(
      producer.callBack(streamOf(descriptor('pointed', 0, 22))),
    )) as ContractError
    expect(twice.violations[0]?.detail).toContain('names the same partition as /22:')
  })

  test('may be found only by the service', async () => {
    const { url } = shared()
    const noted = descriptors('noted', 1).map((each) => ({ ...each, note: 'x' }))
    const sending = new Producer(url, { unknownFields: 'ignore' }).callBack(noted)
    expect(await failureOf(sending)).toMatchObject({ name: 'ContractError', foundBy: 'service' })
  })

  test('is thrown for an empty array or generator', async () => {
    const { url } = shared()
    await expect(new Producer(url).callBack([])).rejects.toThrow(ContractError)
    const nothing = async function* (): AsyncGenerator<never> {}
    await expect(new Producer(url).callBack(nothing())).rejects.toThrow(ContractError)
  })

  test('that contradicts stored partitions names their position in the array of the caller', async () => {
    const { url } = shared()
    const producer = new Producer(url, { descriptorsPerRequest: 10 })
    await producer.callBack(descriptors('contradicted', 30))
    const changed = descriptors('contradicted', 30).map((each, at) =>
      at === 23 ? { ...each, record_count: 99 } : each,
    )
    const error = (await failureOf(producer.callBack(changed))) as ConflictError
    expect(error).toBeInstanceOf(ConflictError)
    expect(error.conflicts).toMatchObject([{ pointer: '/23', partition_name: 'contradicted-0-23' }])
    expect(error.stored).toEqual({ sent: 20, accepted: 0, duplicates: 20 })
  })

  test('that is another problem of the service keeps its code', async () => {
    const { url } = shared()
    const producer = new Producer(url)
    await producer.callBack(descriptors('cancelled', 1))
    await new BatonClient(url).cancel('cancelled')
    const error = (await failureOf(producer.callBack(descriptors('cancelled', 2)))) as ProblemError
    expect(error).toBeInstanceOf(ProblemError)
    expect(error).toMatchObject({ code: 'task_cancelled', status: 409, retryable: false })
  })
})

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.unreachable('it should have been refused'),
    (error: unknown) => error,
  )
}

describe('a call-back that seals', () => {
  test('seals the task with its last request, and with no other', async () => {
    const { url } = shared()
    const client = new BatonClient(url)
    const producer = new Producer(url, { descriptorsPerRequest: 40 })
    const receipt = await producer.callBack(descriptors('sealing', 100), { seal: 100 })
    expect(receipt).toMatchObject({ accepted: 100, requests: 3 })
    expect(await client.task('sealing')).toMatchObject({
      sealed: true,
      expectedPartitions: 100,
      missingPartitions: 0,
    })
    // With the seal in an earlier one, the next would have been refused.
    await expect(client.callBack([descriptor('sealing', 1, 0)])).rejects.toMatchObject({
      code: 'task_sealed',
    })
  })

  test('seals also from a generator, and in halves for a service with a lower limit', async () => {
    const { url } = await startService('--body-limit-mb', '0.01')
    async function* coming() {
      yield* descriptors('orders', 500)
    }
    const receipt = await new Producer(url).callBack(coming(), { seal: true })
    expect(receipt.requests).toBeGreaterThan(5)
    expect(await new BatonClient(url).task('orders')).toMatchObject({
      sealed: true,
      expectedPartitions: null,
      partitions: { total: 500 },
    })
  })

  test('leaves the task open without the option', async () => {
    const { url } = shared()
    await new Producer(url).callBack(descriptors('unsealed', 2), { seal: false })
    expect(await new BatonClient(url).task('unsealed')).toMatchObject({ sealed: false })
  })
})

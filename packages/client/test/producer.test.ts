import { BatonClient, ContractError, ProblemError, Producer, UnreachableError } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { RestartableService } from '../../../test/support/restartable-service.ts'
import { descriptor, descriptors } from './support/descriptors.ts'
import { sharedService } from './support/service.ts'

const shared = sharedService()

describe('a call-back', () => {
  test('gives up in the end', async () => {
    const service = await RestartableService.start()
    await service.kill()
    const sending = new Producer(service.url, { retryForSeconds: 0 }).callBack(descriptors('orders', 2))
    await expect(sending).rejects.toThrow(UnreachableError)
  })
})

describe('an error in a call-back', () => {
  test('is thrown for an empty array or generator', async () => {
    const { url } = shared()
    await expect(new Producer(url).callBack([])).rejects.toThrow(ContractError)
    const nothing = async function* (): AsyncGenerator<never> {}
    await expect(new Producer(url).callBack(nothing())).rejects.toThrow(ContractError)
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

  test('leaves the task open without the option', async () => {
    const { url } = shared()
    await new Producer(url).callBack(descriptors('unsealed', 2), { seal: false })
    expect(await new BatonClient(url).task('unsealed')).toMatchObject({ sealed: false })
  })
})

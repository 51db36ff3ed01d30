import { BatonClient, ContractError, ProblemError, Producer } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'
import { sharedService } from './support/service.ts'

const shared = sharedService()

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
  test('leaves the task open without the option', async () => {
    const { url } = shared()
    await new Producer(url).callBack(descriptors('unsealed', 2), { seal: false })
    expect(await new BatonClient(url).task('unsealed')).toMatchObject({ sealed: false })
  })
})

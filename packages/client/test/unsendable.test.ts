import { BatonClient, BatonError, ContractError, Producer, UnsendableError } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptor } from './support/descriptors.ts'
import { startService } from './support/service.ts'

describe('an invalid request is reported like every other failure', () => {
  const anonymous = new BatonClient({
    url: 'http://127.0.0.1:2',
    fetch: () => Promise.reject(new Error('nothing is sent')),
  })

  test('values that JSON cannot represent are refused', async () => {
    const withBigInt = { ...descriptor('orders', 0, 0), record_count: 1n as unknown as number }
    async function* series() {
      yield descriptor('orders', 0, 0)
      yield { ...withBigInt, partition_name: 'orders-0-1' }
    }
    await expect(anonymous.callBack([withBigInt])).rejects.toThrow(UnsendableError)
    await expect(new Producer(anonymous).callBack(series())).rejects.toThrow(
      'descriptor /1 cannot be written',
    )
    await expect(new Producer(anonymous).callBack([withBigInt])).rejects.toThrow(BatonError)
  })

  test.each([[null], [undefined], ['abc'], [42], [descriptor('orders', 0, 0)]])(
    'a call-back of %j, which is not an array, is refused',
    async (given) => {
      const error = await new Producer(anonymous).callBack(given as never).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(ContractError)
      expect(error).toMatchObject({
        foundBy: 'client',
        message: expect.stringContaining('must be an array of partition descriptors, got '),
      })
    },
  )

  test('a body that only the service checks gets its error', async () => {
    const { url } = await startService()
    const calling = new BatonClient(url).callBack(descriptor('orders', 0, 0) as never)
    await expect(calling).rejects.toThrow('must be an array of partition descriptors, got an object')
  })
})

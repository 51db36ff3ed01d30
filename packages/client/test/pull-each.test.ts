import { BatonClient, pullEach } from '@baton/client'
import { expect, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'
import { rowsOf, statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

const once = { waitSeconds: 0, untilIdle: true }

test('a loop over partitions settles each', async () => {
  const { url } = await startService('--backoff-seconds', '3600', '--backoff-max-seconds', '3600')
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 3))
  for await (const held of pullEach(client, once)) {
    await using _ = held
    expect(held.attempt).toBe(1)
    expect(held.signal.aborted).toBe(false)
    if (held.partition.partition_name === 'orders-0-0') held.done({ records: 10 })
    if (held.partition.partition_name === 'orders-0-1') held.fail({ reason: 'no', final: true })
    if (held.partition.partition_name === 'orders-0-2') held.release({ retryAfterSeconds: 3600 })
  }
  expect(await rowsOf(client, 'orders')).toMatchObject([
    { state: 'done', reportedRecords: 10 },
    { state: 'parked', lastReason: 'no' },
    { state: 'delayed' },
  ])
})

test('leaving the loop releases the held partitions', async () => {
  const { url } = await startService()
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 3))
  for await (const held of pullEach(client, { ...once, concurrency: 2 })) {
    await using _ = held
    if (held.partition.partition_name === 'orders-0-0') break
  }
  expect(await statesOf(client, 'orders')).toEqual(['ready', 'ready', 'ready'])

  const broken = async () => {
    for await (const held of pullEach(client, once)) {
      await using _ = held
      throw new Error('broken')
    }
  }
  await expect(broken()).rejects.toThrow('broken')
  expect(await statesOf(client, 'orders')).toEqual(['ready', 'ready', 'ready'])
})

test('a permanent error ends the loop', async () => {
  const { url } = await startService()
  const loop = async () => {
    for await (const held of pullEach(`${url}/elsewhere`)) held.done()
  }
  await expect(loop()).rejects.toMatchObject({ code: 'route_unknown' })
})

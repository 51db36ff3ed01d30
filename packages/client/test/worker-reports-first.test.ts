import { BatonClient, Worker } from '@baton/client'
import { expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from './support/descriptors.ts'
import { startService } from './support/service.ts'

/** A client whose requests to a blocked path fail. */
function cuttable(url: string) {
  const cut = new Set<string>()
  const failed: string[] = []
  const answered: string[] = []
  const client = new BatonClient({
    url,
    fetch: async (input, init) => {
      const path = new URL(String(input)).pathname
      if (cut.has(path)) {
        failed.push(path)
        throw new TypeError('fetch failed', { cause: new Error('cut off') })
      }
      const answer = await fetch(input, init)
      answered.push(path)
      return answer
    },
  })
  return { client, cut, failed, answered }
}

/** Handlers that end when a test says so. */
function gated() {
  const handled: string[] = []
  const gates: (() => void)[] = []
  const handler = async ({ partition_name }: { partition_name: string }) => {
    handled.push(partition_name)
    await new Promise<void>((resolve) => gates.push(resolve))
  }
  return { handled, gates, handler }
}

test('a failed pull is not repeated while a finished partition is not settled', async () => {
  const { url } = await startService()
  await new BatonClient(url).callBack(descriptors('orders', 1))
  const { client, cut, failed, answered } = cuttable(url)
  const { gates, handler } = gated()
  const worker = new Worker(client, handler, { concurrency: 2, waitSeconds: 1 }).start()
  await until(() => gates.length === 1)
  for (const path of ['/settle', '/pull']) cut.add(path)
  await until(() => failed.includes('/pull'))
  gates[0]?.()
  await until(() => failed.includes('/settle'))
  cut.delete('/pull')
  answered.length = 0
  await until(() => failed.filter((path) => path === '/settle').length === 4)
  expect(answered).toEqual([])
  cut.clear()
  await until(() => answered.includes('/pull'))
  expect(answered[0]).toBe('/settle')
  await worker.stop()
})

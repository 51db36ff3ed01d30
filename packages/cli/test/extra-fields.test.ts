import { BatonClient, Producer, Worker } from '@baton/client'
import { expect, test } from 'vitest'
import { descriptor } from '../../client/test/support/descriptors.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

const KEEP = ['--unknown-fields', 'keep']
const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const one = { ...descriptor('orders', 0, 0), region: 'eu', größe: [1, { a: null }] }

test('extra fields are on the stdin of the command, and the trace in its environment', async () => {
  const { url } = await startService(...KEEP)
  const refused = await baton(['call-back', '-'], { url, input: JSON.stringify([one]) })
  expect(refused.stderr).toContain('"region" is not a field of the contract')
  const taken = await baton(['call-back', ...KEEP, '-'], { url, input: JSON.stringify([one]) })
  expect(taken.stdout).toContain('1 partition accepted')
  const client = new BatonClient({ url, headers: { traceparent: TRACE } })
  await client.callBack([descriptor('orders', 0, 1)])
  const scratch = new Scratch()
  const script =
    'cat > "$OUT/$BATON_PARTITION_NAME"; echo "$TRACEPARENT" > "$OUT/$BATON_PARTITION_NAME.trace"'
  const work = ['work', '--until-idle', '--wait', '0', '--', 'sh', '-c', script]
  expect((await baton(work, { url, env: { OUT: scratch.path } })).code).toBe(0)
  expect(JSON.parse(scratch.read('orders-0-0'))).toEqual(one)
  expect(scratch.read('orders-0-0.trace')).toBe('\n')
  expect(JSON.parse(scratch.read('orders-0-1'))).toEqual(descriptor('orders', 0, 1))
  expect(scratch.read('orders-0-1.trace')).toBe(`${TRACE}\n`)
})

test('a manifest carries extra fields to another service', async () => {
  const { url } = await startService(...KEEP)
  const { url: elsewhere } = await startService(...KEEP)
  await baton(['call-back', ...KEEP, '-'], { url, input: JSON.stringify([one, descriptor('orders', 0, 1)]) })
  const { stdout: manifest } = await baton(['manifest', 'orders'], { url })
  const moved = ['call-back', '--from-manifest', ...KEEP, '-']
  expect((await baton(moved, { url: elsewhere, input: manifest })).stdout).toContain('2 partitions accepted')
  const { stdout } = await baton(['pull', '--batch', '2', '--json'], { url: elsewhere })
  expect(JSON.parse(stdout).partitions).toMatchObject([one, descriptor('orders', 0, 1)])
})

test('the client has types for extra fields', async () => {
  interface Fields {
    readonly region: string
  }
  const { url } = await startService(...KEEP)
  const producer = new Producer<Fields>(url, { unknownFields: 'keep' })
  await producer.callBack([{ ...descriptor('orders', 0, 0), region: 'eu' }])
  // @ts-expect-error: a region is a string, and the service does not check that.
  await producer.callBack([{ ...descriptor('orders', 0, 1), region: 5 }])
  const regions: string[] = []
  const worker = new Worker<Fields>(url, ({ region }) => void regions.push(region), { untilIdle: true })
  await worker.run()
  expect(regions).toEqual(['eu', 5])
})

import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import {
  type ConsumeInput,
  type ConsumeResult,
  fillInGroups,
  type PeerClient,
  Window,
} from '../peer-client.ts'

const NAME = 'partitions'

export async function connectBullMq({ port }: { port: number }): Promise<PeerClient> {
  const connection = { host: '127.0.0.1', port }
  const producer = new Queue(NAME, { connection })
  producer.on('error', () => {})
  await producer.waitUntilReady()
  return {
    fill: (partitions) =>
      fillInGroups(partitions, 1_000, (group) =>
        producer.addBulk(group.map((data) => ({ name: 'partition', data }))),
      ),
    consume: (input) => consume(connection, input),
  }
}

async function consume(
  connection: { host: string; port: number },
  { consumers, seconds }: ConsumeInput,
): Promise<ConsumeResult> {
  const worker = new Worker(NAME, async () => {}, {
    // Each Worker owns a blocking connection; the second one is shared by its concurrent consumers.
    connection: { ...connection, maxRetriesPerRequest: null },
    concurrency: consumers,
    removeOnComplete: { count: 0 },
    autorun: false,
  })
  worker.on('error', () => {})
  await worker.waitUntilReady()
  const window = new Window(seconds)
  worker.on('completed', () => {
    if (window.open) window.acknowledged(1)
  })
  const running = worker.run()
  await sleep(window.remainingMs)
  const result = window.result()
  await worker.close()
  await running
  return result
}

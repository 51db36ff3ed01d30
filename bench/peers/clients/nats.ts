import { setTimeout as sleep } from 'node:timers/promises'
import {
  AckPolicy,
  type Consumer,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import {
  type ConsumeInput,
  type ConsumeResult,
  consumeInLoops,
  fillInGroups,
  type PeerClient,
  Window,
} from '../peer-client.ts'

const NAME = 'partitions'

export async function connectNats({ port }: { port: number }): Promise<PeerClient> {
  const connection = await connect({ servers: `127.0.0.1:${port}` })
  const js = jetstream(connection)
  const admin = await jetstreamManager(connection)
  await admin.streams.add({
    name: NAME,
    subjects: ['partition'],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
  })
  let consumer: Consumer | undefined
  const freshConsumer = async () => {
    if (consumer) await consumer.delete()
    await admin.consumers.add(NAME, {
      durable_name: NAME,
      ack_policy: AckPolicy.Explicit,
      ack_wait: 300 * 1_000_000_000,
      max_ack_pending: 10_000,
    })
    consumer = await js.consumers.get(NAME, NAME)
    return consumer
  }
  return {
    fill: (partitions) =>
      fillInGroups(partitions, 500, (group) =>
        Promise.all(group.map((descriptor) => js.publish('partition', JSON.stringify(descriptor)))),
      ),
    // Messages that were delivered ahead and never acknowledged would be unavailable for five minutes. The
    // stream still has them and delivers them to a new consumer.
    async left() {
      await freshConsumer()
      return (await admin.streams.info(NAME)).state.messages
    },
    async consume(input) {
      if (!consumer) throw new Error('no consumer yet')
      if (input.way === 'one by one') return nextByNext(consumer, input)
      return consume(consumer, input, input.way === 'consume, confirmed')
    },
  }
}

function nextByNext(consumer: Consumer, input: ConsumeInput): Promise<ConsumeResult> {
  return consumeInLoops(input, async () => {
    const delivered = await consumer.next({ expires: 1_000 })
    if (!delivered) return 0
    return (await delivered.ackAck()) ? 1 : 0
  })
}

/**
 * Its documented way for throughput: the server pushes up to a buffer's size, the client acknowledges each
 * message.
 */
async function consume(consumer: Consumer, input: ConsumeInput, confirmed: boolean): Promise<ConsumeResult> {
  const window = new Window(input.seconds)
  const delivered = await consumer.consume({ max_messages: input.consumers * input.batch })
  const timer = sleep(window.remainingMs).then(() => delivered.stop())
  const unconfirmed = new Set<Promise<void>>()
  for await (const message of delivered) {
    if (confirmed) {
      const acknowledged = message.ackAck().then((done) => {
        unconfirmed.delete(acknowledged)
        if (done && window.open) window.acknowledged(1)
      })
      unconfirmed.add(acknowledged)
    } else {
      message.ack()
      if (window.open) window.acknowledged(1)
    }
  }
  await timer
  const result = window.result()
  await Promise.allSettled(unconfirmed)
  return result
}

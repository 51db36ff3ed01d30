import { answerCalls } from '../harness/helper-process.ts'
import { connectBeanstalkd } from './clients/beanstalkd.ts'
import { connectBullMq } from './clients/bullmq.ts'
import { connectGraphileWorker } from './clients/graphile-worker.ts'
import { connectNats } from './clients/nats.ts'
import { connectPgBoss } from './clients/pg-boss.ts'
import type { ConsumeInput, ConsumeResult, PeerClient } from './peer-client.ts'

/** All consumers of one peer run in one process, like the load client that measures Baton. */
const connectors = {
  'pg-boss': connectPgBoss,
  'graphile-worker': connectGraphileWorker,
  bullmq: connectBullMq,
  beanstalkd: connectBeanstalkd,
  nats: connectNats,
}

export type ConnectInput = { [Name in keyof typeof connectors]: ConnectTo<Name> }[keyof typeof connectors]

interface ConnectTo<Name extends keyof typeof connectors> {
  peer: Name
  to: Parameters<(typeof connectors)[Name]>[0]
}

let client: PeerClient | undefined

function connected(): PeerClient {
  if (!client) throw new Error('connect first')
  return client
}

const calls = {
  async connect({ peer, to }: ConnectInput): Promise<void> {
    client = await connectors[peer](to as never)
  },
  fill: ({ partitions }: { partitions: number }): Promise<void> => connected().fill(partitions),
  left: async (): Promise<number | undefined> => connected().left?.(),
  consume: (input: ConsumeInput): Promise<ConsumeResult> => connected().consume(input),
}

export type ConsumerCalls = typeof calls

answerCalls(calls)

import { BatonClient, type BatonError, Producer, UnexpectedAnswerError } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'

/** A client whose requests are all answered by another program. */
function answeredWith(body: string): BatonClient {
  return new BatonClient({
    url: 'http://127.0.0.1:7070',
    retryForSeconds: 0,
    fetch: async () => new Response(body),
  })
}

const calls: Record<string, (client: BatonClient) => Promise<unknown>> = {
  'call-back': (client) => new Producer(client).callBack(descriptors('orders', 1), { retryForSeconds: 0 }),
  pull: (client) => client.pull(),
  settle: (client) => client.settle([{ leaseId: 'a', outcome: 'done' }]),
  renew: (client) => client.renew(['a']),
  tasks: (client) => client.tasks(),
  task: (client) => client.task('orders'),
  pause: (client) => client.pause('orders'),
  manifest: (client) => client.manifest('orders').next(),
  subscribe: (client) => client.subscriptions.create(),
  'subscribed events': (client) => client.subscriptions.events('sub_1'),
}

describe.each(Object.entries(calls))('%s', (_, call) => {
  test.each(['{"status":"ok"}', '[]', 'null', '"ok"', '<html>'])(
    'does not take %s for an answer of Baton',
    async (body) => {
      const error = (await call(answeredWith(body)).catch((reason: unknown) => reason)) as BatonError
      expect(error).toBeInstanceOf(UnexpectedAnswerError)
      expect(error.message).toContain(body)
      expect(error.retryable).toBe(false)
    },
  )
})

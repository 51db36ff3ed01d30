import { BatonClient, type BatonError, Producer, UnexpectedAnswerError } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'

/** A client whose requests are all answered by another program. */
function answeredWith(body: string, status = 200): BatonClient {
  return new BatonClient({
    url: 'http://127.0.0.1:7070',
    retryForSeconds: 0,
    fetch: async () => new Response(body, { status }),
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

test('an answer that a proxy cut is requested again', async () => {
  const bodies = ['{"tasks":[{"taskId":"ord', '{"tasks":[],"next":null}']
  const client = new BatonClient({
    url: 'http://127.0.0.1:7070',
    fetch: async () => new Response(bodies.shift()),
  })
  expect(await client.tasks()).toEqual({ tasks: [], next: null })
})

test('the page of a proxy becomes one line without control characters', async () => {
  const page = '<html>\r\n\t<body>\u001b[31m502 Bad Gateway</body>\r\n</html>\r\n'
  const error = (await answeredWith(page, 502)
    .tasks()
    .catch((reason: unknown) => reason)) as BatonError
  expect(error.message).toBe('status 502 with <html> <body> [31m502 Bad Gateway</body> </html>')
  expect(error.retryable).toBe(true)
})

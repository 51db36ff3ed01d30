import { BatonClient } from '@baton/client'
import { expect } from 'vitest'
import { descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../../packages/client/test/support/faulty-network.ts'
import { statesOf } from '../../../packages/client/test/support/partition-states.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { certificateFile } from '../../postgres/support/postgres-server.ts'
import { localServer } from '../../support/local-server.ts'
import { tokenNamed, tokensFile } from '../../support/tokens-file.ts'
import { ClientFailure, type Method } from '../client-process.ts'
import type { Cases } from '../run-cases.ts'

const NOBODY = 'http://127.0.0.1:2'

/** The error that a call ends with. */
export async function failureOf(call: Promise<unknown>): Promise<Readonly<Record<string, unknown>>> {
  try {
    await call
  } catch (error) {
    if (error instanceof ClientFailure) return error.failure
    throw error
  }
  return expect.unreachable('it should have failed')
}

async function called(count: number, ...flags: string[]) {
  const service = await startService(...flags)
  const operator = new BatonClient(service.url)
  await operator.callBack(descriptors('orders', count))
  return { ...service, operator }
}

export const calls: Cases = {
  'of a pull whose answer is lost is repeated under its key, and gets the leases of the first time': async (
    client,
  ) => {
    const { port, operator } = await called(5)
    const network = await FaultyNetwork.to(port)
    network.loseAnswers(2)
    const answer = await client.call({ url: network.url }, 'pull', { batch: 2 })
    expect(network.lost).toBe(2)
    expect(answer).toMatchObject({
      partitions: [{ partition_name: 'orders-0-0' }, { partition_name: 'orders-0-1' }],
    })
    expect(await statesOf(operator, 'orders')).toEqual(['leased', 'leased', 'ready', 'ready', 'ready'])
  },

  'of a settle whose answer is lost is repeated, and so is the pull in it': async (client) => {
    const { port, operator } = await called(5)
    const { partitions } = await operator.pull()
    const network = await FaultyNetwork.to(port)
    network.loseAnswers(1)
    const leaseId = partitions[0]?.lease?.id ?? ''
    const settlements = [{ leaseId, outcome: 'done' }]
    const answer = await client.call({ url: network.url }, 'settle', settlements, { pull: { batch: 1 } })
    expect(network.lost).toBe(1)
    expect(answer).toMatchObject({ settled: [leaseId], partitions: [{ partition_name: 'orders-0-1' }] })
    expect(await statesOf(operator, 'orders')).toEqual(['done', 'leased', 'ready', 'ready', 'ready'])
  },

  'that would rerun done partitions is not repeated': async (client) => {
    const { port } = await called(1)
    const network = await FaultyNetwork.to(port)
    const service = { url: network.url, retryForSeconds: 30 }
    network.loseAnswers(1)
    expect(await failureOf(client.call(service, 'retry', 'orders', { done: true }))).toMatchObject({
      name: 'UnreachableError',
      retryable: true,
    })
    network.loseAnswers(1)
    await client.call(service, 'retry', 'orders', {})
    expect(network.lost).toBe(2)
  },

  'that is not answered in time finds the service unreachable': async (client) => {
    const { port } = await called(1)
    const network = await FaultyNetwork.to(port)
    network.fallSilent()
    const service = { url: network.url, timeoutSeconds: 0.2, retryForSeconds: 0 }
    expect(await failureOf(client.call(service, 'pull'))).toMatchObject({
      name: 'UnreachableError',
      message: `${network.url} did not answer within 0.2 s`,
    })
  },

  'uses the next URL at once if nothing listens': async (client) => {
    const { url } = await called(2)
    const service = { url: [NOBODY, url], retryForSeconds: 0 }
    expect(await client.call(service, 'task', 'orders')).toMatchObject({ partitions: { total: 2 } })
  },

  'uses the next URL if a proxy says that the service is away': async (client) => {
    const { url } = await called(2)
    const proxy = await answeringWith(() => [502, '<html>Bad Gateway</html>'])
    const service = { url: [proxy, url], retryForSeconds: 10 }
    expect(await client.call(service, 'task', 'orders')).toMatchObject({ partitions: { total: 2 } })
  },

  'reports when no URL answers': async (client) => {
    const service = { url: [NOBODY, 'http://127.0.0.1:3'], retryForSeconds: 0 }
    const failure = await failureOf(client.call(service, 'tasks'))
    expect(failure).toMatchObject({ name: 'UnreachableError' })
    expect(failure['message']).toMatch(/^none of http:..127.0.0.1:2, http:..127.0.0.1:3 answers; the last/)
  },

  'takes the page of another program for no answer, and repeats what a proxy may answer later': async (
    client,
  ) => {
    const call = async (status: number, body: string) => {
      const url = await answeringWith(() => [status, body])
      return failureOf(client.call({ url, retryForSeconds: 0 }, 'tasks'))
    }
    const name = 'UnexpectedAnswerError'
    const elsewhere = { name, status: 200, retryable: false }
    expect(await call(200, '<html>hello</html>')).toMatchObject(elsewhere)
    expect(await call(200, '{"status":"ok"}')).toMatchObject(elsewhere)
    expect(await call(200, '[]')).toMatchObject(elsewhere)
    expect(await call(404, 'Not Found')).toMatchObject({ name, status: 404, retryable: false })
    const page = '<html>\r\n\t<body>\u001b[31m502 Bad Gateway</body>\r\n</html>\r\n'
    expect(await call(502, page)).toMatchObject({
      name,
      message: 'status 502 with <html> <body> [31m502 Bad Gateway</body> </html>',
      retryable: true,
    })
  },

  'requests an answer again that a proxy cut': async (client) => {
    const bodies = ['{"tasks":[{"taskId":"ord', '{"tasks":[],"next":null}']
    const url = await answeringWith(() => [200, bodies.shift() ?? ''])
    expect(await client.call({ url }, 'tasks')).toEqual({ tasks: [], next: null })
  },

  'has the tokens of the service, and a refused one is not tried again': async (client) => {
    const token = tokenNamed('sesame')
    const file = await tokensFile({ tokens: [{ name: 'all', token, roles: ['producer', 'worker'] }] })
    const { url } = await startService('--tokens-file', file)
    const refusal = { name: 'ProblemError', status: 401, retryable: false }
    expect(await failureOf(client.call({ url }, 'pull'))).toMatchObject({
      ...refusal,
      code: 'token_missing',
    })
    expect(await failureOf(client.call({ url, token: 'wrong' }, 'pull'))).toMatchObject(refusal)
    expect(await client.call({ url, token }, 'pull')).toMatchObject({ partitions: [] })
  },

  'names a header that cannot be sent, without its value': async (client) => {
    const failure = await failureOf(client.call({ url: NOBODY, token: 'ses\name' }, 'pull'))
    expect(failure).toMatchObject({ name: 'UnsendableError', retryable: false })
    expect(failure['message']).toMatch(/^the header authorization/)
    expect(failure['message']).not.toContain('ses')
  },

  'uses TLS with the certificate authority that the environment names': async (client) => {
    const files = ['--tls-cert', certificateFile('right.crt'), '--tls-key', certificateFile('server.key')]
    const { port } = await startService(...files)
    const service = { url: `https://localhost:${port}`, retryForSeconds: 0 }
    expect(await failureOf(client.call(service, 'tasks'))).toMatchObject({ name: 'UnreachableError' })

    const ca = certificateFile('ca.crt')
    const trusting = await client.another({ NODE_EXTRA_CA_CERTS: ca, SSL_CERT_FILE: ca })
    await trusting.produce({ service, descriptors: descriptors('orders', 5) })
    const worker = await trusting.work({ service, options: { concurrency: 2, untilIdle: true } })
    await worker.stopped()
    expect(worker.names('settled').toSorted()).toEqual(
      descriptors('orders', 5).map((one) => one.partition_name),
    )
    // A pull that waits is aborted as without TLS.
    const waiting = await trusting.work({ service, options: { waitSeconds: 60 } })
    await waiting.stop()
    expect(waiting.of('stopped')).toMatchObject([{ abandoned: 0 }])
  },

  'is under the base path and the name of the instance, in any script': async (client) => {
    const { url } = await startService('--base-path', '/data/baton')
    const instanceId = 'Zählwerk-北'
    await client.call({ url: `${url}/`, instanceId }, 'pull')
    expect(await client.call({ url }, 'instanceStatus', instanceId)).toMatchObject({
      instanceId,
      role: 'worker',
    })
  },

  'refuses a name that would make another path of a URL': async (client) => {
    const service = { url: NOBODY, retryForSeconds: 0 }
    const methods: readonly [Method, string][] = [
      ['task', 'task id'],
      ['table', 'table name'],
      ['instanceLeases', 'instance id'],
      ['subscriptions.enable', 'subscription id'],
    ]
    for (const [method, what] of methods) {
      const words = async (name: string) => {
        const { name: kind, message } = await failureOf(client.call(service, method, name))
        return [kind, message]
      }
      expect(await words('')).toEqual(['UnsendableError', `the ${what} must not be empty`])
      const path = 'cannot be used as a path segment of a URL'
      expect(await words('..')).toEqual(['UnsendableError', `".." is not a valid ${what}: it ${path}`])
      const lone = 'contains a lone surrogate'
      expect(await words('a\ud800')).toEqual([
        'UnsendableError',
        `"a\\ud800" is not a valid ${what}: it ${lone}`,
      ])
    }
  },

  'reads and controls a task whose name a URL must encode': async (client) => {
    const { url, operator } = await called(1)
    const taskId = 'näxt/week 1'
    await operator.callBack(descriptors(taskId, 3))
    const service = { url }
    expect(await client.call(service, 'task', taskId)).toMatchObject({ taskId, partitions: { ready: 3 } })
    expect(await client.call(service, 'tasks', { search: 'week' })).toMatchObject({ tasks: [{ taskId }] })
    expect(await client.call(service, 'partitions', taskId, { limit: 2 })).toMatchObject({
      partitions: [{ partition_name: `${taskId}-0-0` }, {}],
    })
    expect(await client.call(service, 'pause', taskId)).toMatchObject({ state: 'paused' })
    expect(await client.call(service, 'resume', taskId)).toMatchObject({ state: 'open' })
    expect(await client.call(service, 'seal', taskId, { partitions: 4 })).toMatchObject({ state: 'open' })
    expect(await client.call(service, 'cancel', taskId)).toMatchObject({ state: 'cancelled', changed: 3 })
    expect(await failureOf(client.call(service, 'task', 'no-such'))).toMatchObject({ code: 'task_unknown' })
    for (const bad of ['', '.', '..'])
      expect(await failureOf(client.call(service, 'task', bad))).toMatchObject({ name: 'UnsendableError' })
  },

  'hides that the service has its own name for the table field': async (client) => {
    const { url } = await startService('--table-field', 'warehouseTable')
    const configured = { url, tableField: 'warehouseTable' }
    await client.produce({ service: configured, descriptors: descriptors('orders', 2) })
    // A worker that does not know the name can still read it.
    for (const service of [configured, { url }])
      expect(await client.call(service, 'pull')).toMatchObject({
        partitions: [{ computeTableName: 'results.orders' }],
      })
  },
}

/** A server that answers every request with the next status and body. */
async function answeringWith(next: () => [number, string]): Promise<string> {
  const { url } = await localServer((_request, response) => {
    const [status, body] = next()
    response.writeHead(status).end(body)
  })
  return url
}

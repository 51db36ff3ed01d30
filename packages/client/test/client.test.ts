import { inspect } from 'node:util'
import { BatonClient, UnsendableError } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { tokenNamed, tokensFile } from '../../../test/support/tokens-file.ts'
import { descriptors } from './support/descriptors.ts'
import { FaultyNetwork } from './support/faulty-network.ts'
import { sharedService, startService } from './support/service.ts'

describe('lost answers', () => {
  test('a retry of done partitions is repeated if the call requests it', async () => {
    const service = await startService()
    await new BatonClient(service.url).callBack(descriptors('orders', 1))
    const network = await FaultyNetwork.to(service.port)
    network.loseAnswers(1)
    await new BatonClient(network.url).retry('orders', { done: true }, { retryForSeconds: 30 })
    expect(network.lost).toBe(1)
  })

  test('each retried failure is reported to the listener of the call, or else to that of the client', async () => {
    const reported: string[] = []
    const fails = () => Promise.reject(new TypeError('fetch failed'))
    const answers = () => Promise.resolve(Response.json({ tasks: [], next: null }))
    const script = [fails, fails, answers, fails, answers]
    const client = new BatonClient({
      url: 'http://127.0.0.1:2',
      fetch: () => (script.shift() ?? answers)(),
      onFailure: ({ failures }) => reported.push(`client ${failures}`),
    })
    await client.tasks()
    await client.tasks({ onFailure: ({ failures }) => reported.push(`call ${failures}`) })
    expect(reported).toEqual(['client 1', 'client 2', 'call 1'])
  })

  test('an abort rejects with its own reason', async () => {
    const { url } = await startService()
    const controller = new AbortController()
    const waiting = new BatonClient(url).pull({ waitSeconds: 60, signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })
})

describe('answers of another server', () => {
  test('an invalid URL is refused at once', () => {
    for (const [given, named] of [
      ['localhost:7070', '"localhost:7070"'],
      ['nonsense', '"nonsense"'],
      ['http://', '"http://"'],
      [new URL('ftp://example.com/'), 'ftp://example.com/'],
      ['ftp://ann:secret@example.com', '"ftp://…@example.com"'],
      [{} as { url: string }, 'undefined'],
    ] as const) {
      const words = `url must be a URL that begins with http:// or https://, got ${named}`
      expect(() => new BatonClient(given)).toThrow(new TypeError(words))
    }
    const words = 'url must not have a user name or a password: they are not sent; use a token'
    expect(() => new BatonClient('http://ann:secret@example.com')).toThrow(new TypeError(words))
  })
})

test('an uncaught contract error is printed without its list of violations', async () => {
  const wrong = Array.from({ length: 100 }, (_, at) => ({ pointer: `/${at}`, detail: 'is wrong' }))
  const problem = { code: 'contract_violation', status: 422, title: 'T', detail: 'd', errors: wrong }
  const answer = async () => Response.json(problem, { status: 422 })
  const client = new BatonClient({ url: 'http://127.0.0.1:2', fetch: answer })
  const refused = await client.callBack([]).catch((error: unknown) => error)
  expect(refused).toMatchObject({ violations: wrong, problem })
  expect(inspect(refused)).toMatch(/^ContractError: T: \/0: is wrong \(and 99 more\)/)
  expect(inspect(refused)).not.toContain('pointer')
})

describe('invalid requests are not retried', () => {
  test('an invalid instance name is refused at once', () => {
    const named = (instanceId: string) => () => new BatonClient({ url: 'http://127.0.0.1:2', instanceId })
    expect(named('a\nb')).toThrow('instanceId must not be empty or contain control characters')
    expect(named('')).toThrow('instanceId must not be empty')
    expect(named('Müller')).not.toThrow()
  })

  test('a port that fetch blocks is refused at once', async () => {
    const client = new BatonClient({ url: 'http://127.0.0.1:6000', fetch })
    await expect(client.pull()).rejects.toThrow(UnsendableError)
  })
})

test('a token may come from a function, and one of another role is refused', async () => {
  const sesame = tokenNamed('sesame')
  const file = await tokensFile({ tokens: [{ name: 'all', token: sesame, roles: ['worker'] }] })
  const { url } = await startService('--tokens-file', file)
  const worker = new BatonClient({ url, token: async () => sesame })
  expect(await worker.pull()).toMatchObject({ partitions: [] })
  await expect(worker.cancel('orders')).rejects.toMatchObject({ code: 'token_refused', status: 403 })
})

describe('views and control', () => {
  const shared = sharedService()

  test('tasks are filtered, partitions are paged, and the manifest has a line for each', async () => {
    const client = new BatonClient(shared().url)
    const taskId = 'näxt/week 1'
    await client.callBack(descriptors(taskId, 3))
    expect((await client.tasks({ search: 'week', parked: false })).tasks).toMatchObject([{ taskId }])
    expect((await client.tasks({ search: 'week', parked: true })).tasks).toEqual([])
    expect((await client.partitions(taskId, { limit: 2 })).next).not.toBeNull()
    const lines = []
    for await (const line of client.manifest(taskId)) lines.push(line)
    expect(lines).toMatchObject([{ partition_name: `${taskId}-0-0`, state: 'ready' }, {}, {}])
  })

  test('a task is counted, given a barrier and an owner, and retried', async () => {
    const client = new BatonClient(shared().url)
    await client.callBack(descriptors('controlled', 3))
    expect((await client.totals()).tasks.open).toBeGreaterThan(0)
    expect(await client.levelBarrier('controlled', true)).toMatchObject({ state: 'open' })
    expect(await client.skipParked('controlled')).toMatchObject({ state: 'open' })
    expect(await client.changeOwner('controlled', 'orders compute')).toMatchObject({ changed: 1 })
    expect((await client.task('controlled')).calledBackBy).toEqual(['orders compute'])
    expect(await client.retry('controlled', { level: 0 })).toMatchObject({ changed: 0 })
    await client.cancel('controlled')
  })

  test('scale returns the number of workers for the backlog', async () => {
    const client = new BatonClient({ url: shared().url, instanceId: 'scaled-worker' })
    await client.callBack(descriptors('scaled', 3))
    await client.pull({ tasks: ['scaled'] })
    const scale = await client.scale({ tasks: ['scaled', 'unknown'], targetSeconds: 60 })
    expect(scale).toMatchObject({ targetSeconds: 60, desiredWorkers: 1, reason: 'no-pace' })
    expect(scale.backlog.partitions).toMatchObject({ left: 3, ready: 2, leased: 1 })
    expect(scale.workers.busy).toBe(1)
    expect((await client.scale({ tables: ['results.unknown'] })).backlog.partitions.left).toBe(0)
    expect((await client.scale()).targetSeconds).toBe(600)
    await client.cancel('scaled')
  })
})

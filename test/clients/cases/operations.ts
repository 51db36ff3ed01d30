import { BatonClient } from '@baton/client'
import { expect, onTestFinished } from 'vitest'
import { descriptors } from '../../../packages/client/test/support/descriptors.ts'
import { FaultyNetwork } from '../../../packages/client/test/support/faulty-network.ts'
import { startService } from '../../../packages/client/test/support/service.ts'
import { tokenNamed, tokensFile } from '../../support/tokens-file.ts'
import { until } from '../../support/until.ts'
import type { Cases } from '../run-cases.ts'
import { failureOf } from './calls.ts'

const TABLE = 'results.orders'

async function called(count: number) {
  const { url, port } = await startService()
  const operator = new BatonClient({ url, instanceId: 'loader/7' })
  await operator.callBack(descriptors('orders', count))
  return { url, port, operator }
}

export const operations: Cases = {
  'changes the settings of a task and of a table, which need not exist yet': async (client) => {
    const { url } = await called(1)
    const change = { maxLeases: 3, leaseSeconds: 60 }
    const changed = { settings: change }
    expect(await client.call({ url }, 'changeSettings', 'next', change, {})).toMatchObject(changed)
    expect(await client.call({ url }, 'changeSettings', 'next', { maxLeases: null }, {})).toMatchObject({
      settings: { maxLeases: null, leaseSeconds: 60 },
    })
    expect(await client.call({ url }, 'settings', 'next')).toMatchObject({ settings: { leaseSeconds: 60 } })

    const limit = { maxLeases: 2 }
    expect(await client.call({ url }, 'changeTableSettings', TABLE, limit, {})).toMatchObject({
      table: TABLE,
      settings: limit,
    })
    expect(await client.call({ url }, 'tableSettings', TABLE)).toMatchObject({ settings: limit })
    expect(await client.call({ url }, 'table', TABLE)).toMatchObject({ table: TABLE, tasks: 1 })
    expect(await client.call({ url }, 'tables', { limit: 1 })).toMatchObject({ tables: [{ table: TABLE }] })
    expect(await failureOf(client.call({ url }, 'table', ''))).toMatchObject({ name: 'UnsendableError' })
  },

  'shows what became of the partitions of a task': async (client) => {
    const { url, operator } = await called(4)
    const { partitions } = await operator.pull({ batch: 2 })
    const leaseId = partitions[0]?.lease?.id ?? ''
    await operator.settle([{ leaseId, outcome: 'failed', final: true, reason: 'disk full' }])
    const service = { url }
    const found = async (filter: object) => {
      const list = await client.call(service, 'partitions', 'orders', filter)
      return (list as { partitions: { partition_name: string }[] }).partitions.map(
        ({ partition_name }) => partition_name,
      )
    }
    expect(await found({ level: 0, indexes: { first: 1, last: 2 } })).toEqual(['orders-0-1', 'orders-0-2'])
    expect(await found({ name: 'orders-0-3' })).toEqual(['orders-0-3'])
    expect(await found({ holder: 'loader/7' })).toEqual(['orders-0-1'])
    const { failures } = await operator.task('orders')
    expect(await found({ reason: failures[0]?.key })).toEqual(['orders-0-0'])
    expect(await client.call(service, 'grid', 'orders', { level: 0, cells: 2 })).toMatchObject({ level: 0 })
    expect(await client.call(service, 'feed', 'orders')).toMatchObject({ taskId: 'orders' })
    expect(await client.call(service, 'throughputOfAll', { step: 'hour' })).toMatchObject({ step: 'hour' })
  },

  'controls instances and their leases': async (client) => {
    const { url, operator } = await called(3)
    const service = { url }
    const instanceId = 'loader/7'
    await operator.pull({ batch: 3 })
    expect(await client.call(service, 'instances', { search: 'loader' })).toMatchObject({
      instances: [{ instanceId, leases: 3 }],
    })
    expect(await client.call(service, 'pauseInstance', instanceId)).toMatchObject({ instanceId })
    expect((await operator.pull()).partitions).toEqual([])
    expect(await client.call(service, 'resumeInstance', instanceId)).toMatchObject({ instanceId })
    expect(await client.call(service, 'releasePartition', 'orders', 'orders-0-0')).toMatchObject({
      released: 1,
    })
    const held = await client.call(service, 'instanceLeases', instanceId, { limit: 5 })
    expect(held).toMatchObject({
      leases: [{ partition_name: 'orders-0-1' }, { partition_name: 'orders-0-2', computeTableName: TABLE }],
    })
    expect(await client.call(service, 'releaseInstance', instanceId)).toMatchObject({ released: 2 })
    const attempts = (await client.call(service, 'instanceAttempts', instanceId)) as { attempts: object[] }
    expect(attempts.attempts).toHaveLength(3)
    expect(await failureOf(client.call(service, 'instanceLeases', '..'))).toMatchObject({
      name: 'UnsendableError',
    })
  },

  'shows who it is and who changed what, and changes the owner of a task': async (client) => {
    const named = (name: string, ...roles: string[]) => ({ name, token: tokenNamed(name), roles })
    const file = await tokensFile({
      tokens: [named('operator', 'operator'), named('first', 'producer'), named('second', 'producer')],
    })
    const { url } = await startService('--tokens-file', file)
    await client.call({ url }, 'ready')
    await new BatonClient({ url, token: tokenNamed('first') }).callBack(descriptors('orders', 1))
    const service = { url, token: tokenNamed('operator') }
    expect(await client.call(service, 'whoami')).toMatchObject({ name: 'operator', roles: ['operator'] })
    expect(await client.call(service, 'changeOwner', 'orders', 'second')).toMatchObject({ taskId: 'orders' })
    expect(await client.call(service, 'audit', { task: 'orders', name: 'operator' })).toMatchObject({
      entries: [{ name: 'operator' }],
    })
    expect(await client.call(service, 'audit', { task: 'other' })).toMatchObject({ entries: [] })
    await failureOf(client.call({ url, token: 'wrong' }, 'tasks'))
    expect(await client.call(service, 'nodeAudit', { limit: 5 })).toMatchObject({
      entries: [{ action: 'GET /tasks' }],
    })
  },

  'manages subscriptions, and creates one only once': async (client) => {
    const { url, port, operator } = await called(1)
    const request = { taskPrefix: 'orders', types: ['task.done'] }
    const network = await FaultyNetwork.to(port)
    network.loseAnswers(1)
    expect(
      await failureOf(client.call({ url: network.url }, 'subscriptions.create', request, {})),
    ).toMatchObject({ name: 'UnreachableError' })
    const service = { url }
    const list = (await client.call(service, 'subscriptions.list')) as { id: string }[]
    expect(list).toMatchObject([request])
    const id = list[0]?.id ?? ''
    const { partitions } = await operator.pull()
    await operator.settle([{ leaseId: partitions[0]?.lease?.id ?? '', outcome: 'done' }])
    const read = async () => {
      const page = await client.call(service, 'subscriptions.events', id, { limit: 5 })
      return (page as { events: object[] }).events
    }
    expect(await until(async () => (await read())[0])).toMatchObject({ type: 'task.done' })
    const secret = await client.call(service, 'subscriptions.rotateSecret', id, {}, {})
    expect(secret).toMatchObject({ id, secret: expect.stringMatching(/^whsec_/) })
    expect(await client.call(service, 'subscriptions.deliveries', id, {})).toMatchObject({
      deliveries: [{ event: 1, state: 'kept' }],
    })
    expect(await failureOf(client.call(service, 'subscriptions.redeliver', id, 99))).toMatchObject({
      name: 'ProblemError',
      status: 404,
    })
    expect(await client.call(service, 'subscriptions.enable', id)).toMatchObject({ id })
    expect(await client.call(service, 'subscriptions.remove', id)).toMatchObject({ id })
    expect(await client.call(service, 'subscriptions.list')).toEqual([])
  },

  'follows the events of the service, and misses none when the connection breaks': async (client) => {
    const { port, operator } = await called(1)
    const network = await FaultyNetwork.to(port)
    const following = client.follow({ url: network.url }, 'after')
    const seen = client.eventsOf('follower').length
    // While nobody watches, the service forgets what it would send again.
    let alsoWatches = false
    const ending = new AbortController()
    onTestFinished(() => ending.abort())
    const watch = async () => {
      for await (const _ of operator.events({ signal: ending.signal })) alsoWatches = true
    }
    watch().catch(() => {})
    // The streams may open after the first call-back.
    for (let before = 0; client.eventsOf('follower').length === seen || !alsoWatches; before += 1) {
      await operator.callBack(descriptors(`before-${before}`, 1))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    network.recover()
    await operator.callBack(descriptors('after', 1))
    await following
  },
}

import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { rowsOf } from '../../client/test/support/partition-states.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'

describe('pull, renew and settle, for scripts', () => {
  test('a pull with a record budget takes partitions until it is reached, with or without --batch', async () => {
    const { url } = await startService()
    await new BatonClient(url).callBack(descriptors('orders', 6, 10))
    const taken = async (...args: string[]) =>
      JSON.parse((await baton([...args, '--records', '30', '--json'], { url })).stdout).partitions
    const first = await taken('pull')
    expect(first).toHaveLength(3)
    expect(await taken('pull', '--batch', '1')).toHaveLength(1)
    expect(await taken('settle', first[0].lease.id)).toHaveLength(2)
  })

  test('a hand-off can be done step by step', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    expect(await baton(['pull'], { url })).toMatchObject({ code: 3, stderr: 'no partition is ready\n' })
    await client.callBack(descriptors('orders', 4))
    const pulled = await baton(['pull', '--json', '--batch', '2'], {
      url,
      env: { BATON_INSTANCE_ID: 'script-1' },
    })
    const { partitions } = JSON.parse(pulled.stdout)
    expect(partitions).toMatchObject(descriptors('orders', 2))
    expect((await rowsOf(client, 'orders'))[0]).toMatchObject({ state: 'leased', holder: 'script-1' })
    const [first, second] = partitions.map(({ lease }: { lease: { id: string } }) => lease.id)

    const renewed = await baton(['renew', first, second, '--json'], { url })
    expect(JSON.parse(renewed.stdout).renewed).toMatchObject([{ leaseId: first }, { leaseId: second }])
    expect(await baton(['renew', 'no-such'], { url })).toMatchObject({ code: 1 })

    const settled = await baton(['settle', first, '--processed', '9', '--batch', '1', '--json'], { url })
    expect(settled.code).toBe(0)
    expect(JSON.parse(settled.stdout)).toMatchObject({
      settled: [first],
      refused: [],
      partitions: [{ partition_name: 'orders-0-2' }],
    })
    const failed = await baton(['settle', second, '--outcome', 'failed', '--reason', 'locked', '--final'], {
      url,
    })
    expect(failed).toMatchObject({ code: 0, stdout: '1 lease settled\n' })
    const refused = await baton(['settle', second, '--outcome', 'done'], { url })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('lease_settled')
    expect(await rowsOf(client, 'orders')).toMatchObject([
      { state: 'done', reportedRecords: 9 },
      { state: 'parked', lastReason: 'locked' },
      { state: 'leased' },
      { state: 'ready' },
    ])
  })

  test('settle reads settlements from stdin', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 2))
    const { partitions } = await client.pull({ batch: 2 })
    const input = partitions
      .map(({ lease }) => JSON.stringify({ leaseId: lease?.id, outcome: 'done' }))
      .join('\n')
    expect(await baton(['settle', '-'], { url, input })).toMatchObject({
      code: 0,
      stdout: '2 leases settled\n',
    })
  })

  test('the table field has the name that the service uses', async () => {
    const { url } = await startService('--table-field', 'warehouseTable')
    const env = { BATON_TABLE_FIELD: 'warehouseTable' }
    const wire = descriptors('orders', 1).map(({ computeTableName, ...others }) => ({
      ...others,
      warehouseTable: computeTableName,
    }))
    expect(await baton(['call-back', '-'], { url, env, input: JSON.stringify(wire) })).toMatchObject({
      code: 0,
    })
    const { stdout } = await baton(['pull', '--json'], { url, env })
    expect(JSON.parse(stdout).partitions[0]).toMatchObject({ warehouseTable: 'results.orders' })
    const manifest = await baton(['manifest', 'orders'], { url, env })
    expect(JSON.parse(manifest.stdout)).toMatchObject({ warehouseTable: 'results.orders', state: 'leased' })
  })
})

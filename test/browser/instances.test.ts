import { describe, expect, test } from 'vitest'
import { partitionsOf, startService } from './support/service.ts'
import { visiting } from './support/visit.ts'

const visit = visiting()

describe('an instance', () => {
  test('that works shows what it holds; a node hands out and holds nothing', async () => {
    const { url, client } = await startService()
    await client.callBack(partitionsOf('orders', [2]))
    await client.pull()
    const worker = await visit(`${url}/#/instances/browser-test`)
    await worker.getByRole('region', { name: 'What it did' }).getByText('live lease').waitFor()
    const { instanceId } = await client.instanceStatus()
    const node = await visit(`${url}/#/instances/${encodeURIComponent(instanceId)}`)
    await node.getByText('of Baton', { exact: true }).waitFor()
    expect(await node.getByRole('region', { name: 'What it did' }).innerText()).not.toContain('lease')
  })
})

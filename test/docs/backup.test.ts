import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ServiceProcess } from '../../packages/server/test/support/service-process.ts'
import { readDocument } from './support/markdown.ts'
import { commandsOf, runInBash } from './support/shell.ts'

const descriptor = (index: number) => ({
  taskId: 'orders',
  computeTableName: 'results.orders',
  partition_name: `orders-0-${index}`,
  record_count: 100,
  priorityLevel: 0,
})

async function post(url: string, body: unknown) {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  expect(response.status).toBe(200)
  return response.json()
}

async function pull(url: string, batch: number) {
  const response = await fetch(`${url}/pull`, { headers: { prefer: `batch=${batch}` } })
  const { partitions } = await response.json()
  return partitions as { partition_name: string; lease: { id: string } }[]
}

const settleDone = (url: string, leases: { lease: { id: string } }[]) =>
  post(
    `${url}/settle`,
    leases.map(({ lease }) => ({ leaseId: lease.id, outcome: 'done' })),
  )

test('the backup of docs/operations.md, taken from a running service, can be restored', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'baton-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const live = await ServiceProcess.started([], join(folder, 'data'))
  await post(
    `${live.url}/call-back`,
    [0, 1, 2, 3].map((index) => descriptor(index)),
  )
  const [first, second] = await pull(live.url, 2)
  if (first === undefined || second === undefined) throw new Error('nothing was handed out')
  await settleDone(live.url, [first])

  const document = readDocument('docs/operations.md')
  const [backup = '', restore = ''] = commandsOf(document, 'Backup and restore', {
    'DATA=./data': `DATA=${folder}/data`,
    'COPY=./baton-backup.db': `COPY=${folder}/copy.db`,
    'mkdir ./restored': `COPY=${folder}/copy.db; cd ${folder}; mkdir ./restored`,
    'npm start -- --data ./restored': '',
  })
  await runInBash(backup)
  const [third] = await pull(live.url, 1)
  if (third === undefined) throw new Error('nothing was handed out after the backup')
  await post(`${live.url}/call-back`, [descriptor(4)])
  await runInBash(restore)

  const restored = await ServiceProcess.started([], join(folder, 'restored'))
  const task = await (await fetch(`${restored.url}/tasks/orders`)).json()
  expect(task.partitions).toMatchObject({ total: 4, done: 1, leased: 1, ready: 2 })
  // What was given out before the backup can be settled; what was given out after it never happened.
  const { settled, refused } = await settleDone(restored.url, [second, third])
  expect(settled).toEqual([second.lease.id])
  expect(refused).toMatchObject([{ leaseId: third.lease.id, code: 'lease_unknown' }])
  const again = await pull(restored.url, 10)
  expect(again.map((partition) => partition.partition_name)).toEqual(['orders-0-2', 'orders-0-3'])
  const calledBack = await post(
    `${restored.url}/call-back`,
    [0, 1, 2, 3, 4].map((index) => descriptor(index)),
  )
  expect(calledBack).toEqual({ taskId: 'orders', accepted: 1, duplicates: 4 })
})

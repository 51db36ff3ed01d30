import { join } from 'node:path'
import type { CallBackAnswer, PullAnswer, PulledPartition, SettleAnswer, TaskView } from '@baton/protocol'
import { expect, test } from 'vitest'
import { ServiceProcess } from '../support/service-process.ts'
import { testFolder } from '../support/test-folder.ts'
import { readDocument } from './support/markdown.ts'
import { commandsOf, runInBash } from './support/shell.ts'

/** A task with this many partitions. */
const partitions = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    taskId: 'orders',
    computeTableName: 'results.orders',
    partition_name: `orders-0-${index}`,
    record_count: 100,
    priorityLevel: 0,
  }))

async function ask<Answer>(
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const posted = { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(url, {
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : posted),
  })
  expect(response.status).toBe(200)
  return (await response.json()) as Answer
}

const callBack = (url: string, count: number) => ask<CallBackAnswer>(`${url}/call-back`, partitions(count))

async function pull(url: string, batch: number): Promise<PulledPartition[]> {
  const answer = await ask<PullAnswer>(`${url}/pull`, undefined, { prefer: `batch=${batch}` })
  return answer.partitions
}

const settleDone = (url: string, leases: string[]) =>
  ask<SettleAnswer>(
    `${url}/settle`,
    leases.map((leaseId) => ({ leaseId, outcome: 'done' })),
  )

test('the backup of docs/backup.md, taken from a running service, can be restored', async () => {
  const folder = await testFolder()
  const live = await ServiceProcess.started([], join(folder, 'data'))
  await callBack(live.url, 4)
  const [first = '', second = ''] = (await pull(live.url, 2)).map(({ lease }) => lease?.id ?? '')
  await settleDone(live.url, [first])

  const [backup = '', restore = ''] = commandsOf(readDocument('docs/backup.md'), 'Backup and restore', {
    'DATA=./data': `DATA=${folder}/data`,
    'COPY=./baton-backup.db': `COPY=${folder}/copy.db`,
    'mkdir ./restored': `COPY=${folder}/copy.db; cd ${folder}; mkdir ./restored`,
    'npm start -- --data ./restored': '',
  })
  const said = await runInBash(backup)
  expect(said).toContain('OK: 1 task, 4 partitions')
  const [third = ''] = (await pull(live.url, 1)).map(({ lease }) => lease?.id ?? '')
  await callBack(live.url, 5)
  await runInBash(restore)

  const restored = await ServiceProcess.started([], join(folder, 'restored'))
  const task = await ask<TaskView>(`${restored.url}/tasks/orders`)
  expect(task.partitions).toMatchObject({ total: 4, done: 1, leased: 1, ready: 2 })
  // A lease from before the backup can be settled; a lease from after it does not exist.
  const { settled, refused } = await settleDone(restored.url, [second, third])
  expect(settled).toEqual([second])
  expect(refused).toMatchObject([{ leaseId: third, code: 'lease_unknown' }])
  const again = await pull(restored.url, 10)
  expect(again.map((partition) => partition.partition_name)).toEqual(['orders-0-2', 'orders-0-3'])
  expect(await callBack(restored.url, 5)).toEqual({ taskId: 'orders', accepted: 1, duplicates: 4 })
})

import { type PartitionRow, partitionStates, type StateCounts } from '@baton/protocol'
import type { NodeProcess } from '../../postgres/support/node-process.ts'
import { doneAt, type SeenLease, story } from './history.ts'
import type { ProducedTask } from './produced-task.ts'
import { questions } from './questions.ts'
import type { Scene } from './scene.ts'
import type { DoneTimes } from './task-invariants.ts'

/** What became of everything, as the nodes show it: nothing is lost, and every counter is what the rows add up to. */
export async function checkEndState(scene: Scene, nodes: readonly NodeProcess[]): Promise<DoneTimes> {
  const doneTimes = new Map<string, number>()
  const ofPartition = Map.groupBy(scene.history.leases.values(), ({ partition }) => partition.partition_name)
  for (const task of scene.history.tasks.values()) {
    if (task.accepted.size === 0) continue
    const rows = await partitionsOf(scene, task.taskId)
    for (const row of rows) {
      checkRow(task, row, ofPartition.get(row.partition_name) ?? [], scene)
      if (row.settledAt !== null) doneTimes.set(row.partition_name, Date.parse(row.settledAt))
    }
    checkNames(task, rows, scene)
    for (const node of nodes) await checkCounters(scene, node, task.taskId, rows)
  }
  await checkInstances(scene)
  return doneTimes
}

function checkRow(
  task: ProducedTask,
  row: PartitionRow,
  leases: readonly SeenLease[],
  { findings }: Scene,
): void {
  const { partition_name: name, state } = row
  const add = (what: string) => findings.add(`${what}: ${name} is ${state}; ${leases.map(story).join(' | ')}`)
  const isFinished = state === 'done' || (state === 'cancelled' && task.cancelledAt !== undefined)
  if (!isFinished) add('not finished')
  if (state === 'done' && leases.every(({ sentAt }) => sentAt.done === undefined)) add('nobody said so')
  if (state !== 'done' && leases.some((lease) => doneAt(lease) !== undefined)) add('done was forgotten')
  if (row.record_count !== task.partitions.get(name)?.record_count) add('not what was called back')
  const term = Math.max(0, ...leases.map((lease) => lease.term))
  if (term === 0 && state === 'done') add('never handed out')
}

function checkNames(task: ProducedTask, rows: readonly PartitionRow[], { findings }: Scene): void {
  const stored = new Set(rows.map(({ partition_name }) => partition_name))
  if (stored.size < rows.length) findings.add(`${task.taskId} lists a partition twice`)
  for (const name of task.accepted) if (!stored.has(name)) findings.add(`${name} was accepted and is lost`)
  const { taskId, saidToBeNew, lacksAnswers } = task
  if (saidToBeNew > stored.size || (saidToBeNew < stored.size && !lacksAnswers))
    findings.add(`${saidToBeNew} partitions of ${taskId} were answered as new, and it has ${stored.size}`)
}

async function checkCounters(
  { asking, findings, chance }: Scene,
  node: NodeProcess,
  taskId: string,
  rows: readonly PartitionRow[],
): Promise<void> {
  const { body } = await asking.demand(questions.task, { path: `/tasks/${taskId}` }, chance, node)
  const expected = { partitions: countsOf(rows, () => 1), records: countsOf(rows, (row) => row.record_count) }
  for (const what of ['partitions', 'records'] as const) {
    const [shown, counted] = [JSON.stringify(body[what]), JSON.stringify(expected[what])]
    if (shown !== counted)
      findings.add(`${what} of ${taskId} are ${shown} on ${node.name}, and ${counted} by its rows`)
  }
}

function countsOf(rows: readonly PartitionRow[], weight: (row: PartitionRow) => number): StateCounts {
  const sum = (some: readonly PartitionRow[]) => some.reduce((total, row) => total + weight(row), 0)
  const states = partitionStates.map((state) => [state, sum(rows.filter((row) => row.state === state))])
  return { total: sum(rows), ...Object.fromEntries(states) } as StateCounts
}

async function partitionsOf({ asking, chance }: Scene, taskId: string): Promise<PartitionRow[]> {
  const rows: PartitionRow[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const from: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const path = `/tasks/${taskId}/partitions?limit=1000${from}`
    const { body } = await asking.demand(questions.partitions, { path }, chance)
    rows.push(...body.partitions)
    cursor = body.next
  }
  return rows
}

/** Nobody holds a lease when everything is finished. */
async function checkInstances({ asking, findings, chance }: Scene): Promise<void> {
  const { body } = await asking.demand(questions.instances, { path: '/instances?limit=1000' }, chance)
  for (const { instanceId, leases } of body.instances)
    if (leases !== 0) findings.add(`${instanceId} holds ${leases} leases in the end`)
}

import { type PartitionRow, partitionStates, type StateCounts } from '@baton/protocol'
import type { FleetNode } from './fleet.ts'
import { doneAt, type History, leasesByPartition, type SeenLease, story } from './history.ts'
import type { ProducedTask } from './produced-task.ts'
import { requestKinds } from './request-kinds.ts'
import type { Findings, Scene } from './scene.ts'
import type { DoneTimes } from './task-checks.ts'

export type Rows = ReadonlyMap<string, readonly PartitionRow[]>

/**
 * The final state of all partitions, by task, as the nodes show it. On every node, every counter must match
 * the rows.
 */
export async function readEndState(scene: Scene, nodes: readonly FleetNode[]): Promise<Rows> {
  const rows = new Map<string, readonly PartitionRow[]>()
  for (const { taskId, accepted } of scene.history.tasks.values()) {
    if (accepted.size === 0) continue
    const ofTask = await partitionsOf(scene, taskId)
    rows.set(taskId, ofTask)
    for (const node of nodes) if (!node.isAway) await checkCounters(scene, node, taskId, ofTask)
  }
  await checkInstances(scene)
  return rows
}

/**
 * Checks that nothing acknowledged is lost, and that nothing exists that was not requested. `certain` is the
 * part of the history that cannot be lost.
 */
export function checkEndState(rows: Rows, history: History, certain: History, findings: Findings): void {
  const asked = leasesByPartition(history)
  const answered = leasesByPartition(certain)
  for (const [taskId, ofTask] of rows) {
    const task = certain.tasks.get(taskId)
    if (task === undefined) continue
    for (const row of ofTask) {
      checkRow(task, row, answered.get(row.partition_name) ?? [], findings)
      const isSaid = asked.get(row.partition_name)?.some(({ sentAt }) => sentAt.done !== undefined) === true
      if (row.state === 'done' && !isSaid)
        findings.add(`${row.partition_name} is done, and no worker said so`)
    }
    checkNames(task, ofTask, findings)
  }
}

export function doneTimesOf(rows: Rows): DoneTimes {
  const settled = [...rows.values()].flat().filter(({ settledAt }) => settledAt !== null)
  return new Map(settled.map((row) => [row.partition_name, Date.parse(row.settledAt ?? '')]))
}

function checkRow(
  task: ProducedTask,
  row: PartitionRow,
  leases: readonly SeenLease[],
  findings: Findings,
): void {
  const { partition_name: name, state } = row
  const add = (what: string) => findings.add(`${what}: ${name} is ${state}; ${leases.map(story).join(' | ')}`)
  const isFinished = state === 'done' || (state === 'cancelled' && task.cancelledAt !== undefined)
  if (!isFinished) add('not finished')
  if (state !== 'done' && leases.some((lease) => doneAt(lease) !== undefined)) add('done was forgotten')
  if (row.record_count !== task.partitions.get(name)?.record_count) add('not what was called back')
}

function checkNames(task: ProducedTask, rows: readonly PartitionRow[], findings: Findings): void {
  const stored = new Set(rows.map(({ partition_name }) => partition_name))
  if (stored.size < rows.length) findings.add(`${task.taskId} lists a partition twice`)
  for (const name of task.accepted) if (!stored.has(name)) findings.add(`${name} was accepted and is lost`)
  const { taskId, saidToBeNew, lacksAnswers } = task
  if (saidToBeNew > stored.size || (saidToBeNew < stored.size && !lacksAnswers))
    findings.add(`${saidToBeNew} partitions of ${taskId} were answered as new, and it has ${stored.size}`)
}

async function checkCounters(
  { client, findings, chance }: Scene,
  node: FleetNode,
  taskId: string,
  rows: readonly PartitionRow[],
): Promise<void> {
  const { body } = await client.sendUntilAccepted(
    requestKinds.task,
    { path: `/tasks/${taskId}` },
    chance,
    node,
  )
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

async function partitionsOf({ client, chance }: Scene, taskId: string): Promise<PartitionRow[]> {
  const rows: PartitionRow[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const from: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const path = `/tasks/${taskId}/partitions?limit=1000${from}`
    const { body } = await client.sendUntilAccepted(requestKinds.partitions, { path }, chance)
    rows.push(...body.partitions)
    cursor = body.next
  }
  return rows
}

/** No instance holds a lease when everything is finished. */
async function checkInstances({ client, findings, chance }: Scene): Promise<void> {
  const { body } = await client.sendUntilAccepted(
    requestKinds.instances,
    { path: '/instances?limit=1000' },
    chance,
  )
  for (const { instanceId, leases } of body.instances)
    if (leases !== 0) findings.add(`${instanceId} holds ${leases} leases in the end`)
}

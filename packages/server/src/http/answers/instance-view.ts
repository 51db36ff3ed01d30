import type { InstanceStatus } from '@baton/protocol'
import type { InstanceRecord } from '../../handoff/shown/instance-record.ts'
import { statusOf } from '../../handoff/sightings.ts'
import { timestampOf } from './wire-time.ts'

/** An instance as the wire shows it. */
export function viewInstance(instance: InstanceRecord): InstanceStatus {
  const { instanceId, role, firstSeenAt, lastSeenAt, leases, totals, node, tasks } = instance
  return {
    instanceId,
    role,
    status: statusOf(instance),
    firstSeenAt: timestampOf(firstSeenAt),
    lastSeenAt: timestampOf(lastSeenAt),
    leases,
    totals,
    ...(node === null ? {} : { version: node.version, startedAt: timestampOf(node.startedAt) }),
    ...(role === 'producer' || tasks.length > 0
      ? { tasks: tasks.map((task) => ({ ...task, lastCallBackAt: timestampOf(task.lastCallBackAt) })) }
      : {}),
  }
}

import type { HeldLease, InstanceAttempt, InstanceStatus, ProducedTask } from '@baton/protocol'
import { statusOf } from '../../handoff/instance-status.ts'
import type {
  InstanceAttemptDetails,
  InstanceDetails,
  InstanceLeaseDetails,
  NodeDetails,
  ProducedTaskDetails,
} from '../../handoff/views/queries.ts'
import { presentWork } from './partition-view.ts'
import { nameOf, timestampOf } from './wire-values.ts'

export function presentInstance(instance: InstanceDetails): InstanceStatus {
  const { instanceId, role, firstSeenAt, lastSeenAt, leases, pausedAt, totals, node, tasks, leadsSince } =
    instance
  return {
    instanceId,
    role,
    status: statusOf(instance),
    firstSeenAt: timestampOf(firstSeenAt),
    lastSeenAt: timestampOf(lastSeenAt),
    leases,
    ...(pausedAt === null ? {} : { pausedAt: timestampOf(pausedAt) }),
    totals,
    ...(node === null ? {} : nodeFields(node)),
    ...(leadsSince === null ? {} : { leadsSince: timestampOf(leadsSince) }),
    ...(tasks !== undefined && (role === 'producer' || tasks.length > 0)
      ? { tasks: tasks.map(presentProducedTask) }
      : {}),
  }
}

const presentProducedTask = ({ owners: _, lastCallBackAt, ...task }: ProducedTaskDetails): ProducedTask => ({
  ...task,
  lastCallBackAt: timestampOf(lastCallBackAt),
})

const nodeFields = ({ version, startedAt, load }: NodeDetails) => ({
  version,
  startedAt: timestampOf(startedAt),
  ...(load === null ? {} : { load: load / 100 }),
})

export function presentHeldLease(lease: InstanceLeaseDetails): HeldLease {
  const { attempt, leasedAt, expiresAt } = lease
  return {
    ...descriptorOf(lease),
    attempt,
    leasedAt: timestampOf(leasedAt),
    expiresAt: timestampOf(expiresAt),
    ...presentWork(lease),
  }
}

export function presentInstanceAttempt(ended: InstanceAttemptDetails): InstanceAttempt {
  const { attempt, startedAt, endedAt, outcome, reason, records } = ended
  return {
    ...descriptorOf(ended),
    attempt,
    startedAt: timestampOf(startedAt),
    endedAt: timestampOf(endedAt),
    outcome,
    reason,
    records,
  }
}

function descriptorOf(named: InstanceLeaseDetails | InstanceAttemptDetails) {
  const { taskId, computeTableName, recordCount, level } = named
  return {
    taskId,
    computeTableName,
    partition_name: nameOf(taskId, named),
    record_count: recordCount,
    priorityLevel: level,
  }
}

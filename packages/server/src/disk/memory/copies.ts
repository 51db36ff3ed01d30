import type { StoredKey, StoredLane, StoredPartition, StoredTask } from '../../handoff/stored.ts'

// What enters or leaves a medium is copied, so that neither side sees changes that the other did not write. By hand:
// structuredClone takes ten times as long.

export const copyTask = (task: StoredTask): StoredTask => ({
  ...task,
  partitions: { ...task.partitions },
  records: { ...task.records },
  owners: [...task.owners],
  reruns: task.reruns.map((rerun) => ({ ...rerun })),
  staging: task.staging === null ? null : { ...task.staging },
  durations: [...task.durations],
})

export const copyLane = (lane: StoredLane): StoredLane => ({
  ...lane,
  partitions: { ...lane.partitions },
  records: { ...lane.records },
})

export const copyPartition = (partition: StoredPartition): StoredPartition => ({ ...partition })

export const copyKey = (key: StoredKey): StoredKey => ({ ...key, leases: [...key.leases] })

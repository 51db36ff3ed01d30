import type { InstanceStatus, PartitionState, TaskState } from '@baton/client'

export const stateColours = {
  ready: 'blue',
  held: 'dim',
  leased: 'yellow',
  delayed: 'magenta',
  parked: 'red',
  done: 'green',
  cancelled: 'dim',
} as const satisfies Record<PartitionState, string>

export const taskColours = {
  open: 'blue',
  paused: 'yellow',
  done: 'green',
  stalled: 'red',
  cancelled: 'dim',
} as const satisfies Record<TaskState, string>

export const instanceColours = {
  up: 'green',
  silent: 'yellow',
  lost: 'red',
  draining: 'yellow',
  down: 'red',
} as const satisfies Record<InstanceStatus['status'], string>

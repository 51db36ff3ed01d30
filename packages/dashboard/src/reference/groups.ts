import type { Actor } from './api-document.ts'

/** Who an operation is for, in the order of a task's life. */
export const groups: readonly { readonly actor: Actor; readonly title: string; readonly text: string }[] = [
  { actor: 'producer', title: 'Producer', text: 'Computes a task and calls its partitions back.' },
  { actor: 'worker', title: 'Worker', text: 'Pulls partitions, keeps their leases, settles them.' },
  { actor: 'operator', title: 'Operator', text: 'Looks on, and takes control where something is stuck.' },
  { actor: 'anyone', title: 'Anyone', text: 'Who takes part, and whether the service is well.' },
]

/** Who requested a change. */
export interface Requester {
  /** The name of the token or of the user; null if neither is required. */
  readonly name: string | null
  readonly address: string | null
  /** The body of the request, shortened. Null if it had none, or if it may contain secrets. */
  readonly body: Readonly<Record<string, unknown>> | null
}

/** The last change, and its sender. A task that paused itself has the reason for that. */
export type Stamp = readonly [at: number, name: string | null, because?: string]

/** How a task came to be what it is. Resuming a task removes the stamp of its pause. */
export interface TaskStamps {
  readonly paused?: Stamp
  readonly cancelled?: Stamp
  readonly sealed?: Stamp
  /** Of settings, barrier or owner. */
  readonly changed?: Stamp
}

const stampOf: Readonly<Record<string, keyof TaskStamps>> = {
  pause: 'paused',
  cancel: 'cancelled',
  seal: 'sealed',
  settings: 'changed',
  'level-barrier': 'changed',
  owner: 'changed',
}

export function stamped(
  stamps: TaskStamps | null,
  verb: string,
  at: number,
  name: string | null,
): TaskStamps | null {
  const stamp = stampOf[verb]
  if (stamp !== undefined) return { ...stamps, [stamp]: [at, name] }
  if (verb !== 'resume' || stamps?.paused === undefined) return stamps
  const { paused: _paused, ...others } = stamps
  return others
}

import type { Disk, OpenedDisk, SharedDisk } from '../handoff/disk.ts'
import { NotLeader } from '../handoff/store.ts'
import type { LeaderRow } from '../handoff/stored.ts'
import type { TermCallbacks } from './leadership.ts'

/**
 * The disk for the engine of one leadership. Opening the shared disk takes over from the current leader. An
 * engine may therefore open it again, after a failure, only while the leader row still names this node. Once
 * another node has taken over, all calls fail and the leadership is notified. The shared disk may already be
 * open for a later leadership by then, in whose term this engine must not write.
 */
export function diskOfTerm(
  disk: SharedDisk,
  nodeId: string,
  seen: LeaderRow,
  callbacks: TermCallbacks,
): Disk {
  let known: LeaderRow | null = seen
  let isOver = false
  const open = async (): Promise<OpenedDisk> => {
    const row = known ?? (await disk.readLeaderRow())
    if (known === null && row.leader?.nodeId !== nodeId) {
      isOver = true
      callbacks.lost()
      throw new NotLeader()
    }
    known = null
    const opened = await disk.open(row.term)
    callbacks.opened(opened.term, opened.now)
    return opened
  }
  /** The shared disk stays open for the next leadership. */
  const close = async () => {
    isOver = true
  }
  const own = { open, close, hasSpace: () => disk.hasSpace() }
  return fenced(disk, own, () => isOver || callbacks.over.aborted) as unknown as Disk
}

type Method = (...given: unknown[]) => unknown

/** The methods of `target`, which fail once the leadership is over. Those in `own` replace them. */
function fenced<Target extends object>(
  target: Target,
  own: Readonly<Record<string, unknown>>,
  isOver: () => boolean,
): Target {
  return new Proxy(target, {
    get(_, name) {
      const value = own[name as string] ?? target[name as keyof Target]
      if (typeof value === 'object' && value !== null) return fenced(value, {}, isOver)
      if (typeof value !== 'function' || name === 'close' || name === 'hasSpace') return value
      return (...given: unknown[]) =>
        isOver() ? Promise.reject(new NotLeader()) : (value as Method).apply(target, given)
    },
  })
}

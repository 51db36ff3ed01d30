import type { WallClock } from '../handoff/clock.ts'
import type { Disk, OpenedDisk } from '../handoff/disk.ts'
import { LeaderUnavailable } from '../handoff/store.ts'
import type { LeaderRow } from '../handoff/stored.ts'
import type { Election } from './election.ts'

/** A disk that several nodes share, and that records which of them leads. */
export interface SharedDisk extends Omit<Disk, 'open'>, Election {
  /** Takes over, if the leader row still has this term. */
  open(from: string | null): Promise<OpenedSharedDisk>
}

interface OpenedSharedDisk extends OpenedDisk {
  readonly leaderTerm: string
  /** The database's clock. */
  readonly now: number
}

interface LedDiskEvents {
  opened(term: string, now: number): void
  lost(): void
  /** Aborted if the end of this leadership was detected elsewhere. */
  readonly over: AbortSignal
}

/**
 * The disk for the engine of one leadership. Opening the shared disk takes over from the current leader. An
 * engine may therefore open it again, after a failure, only while the leader row still names this node. Once
 * another node has taken over, all calls fail and the leadership is notified. The shared disk may already be
 * open for a later leadership by then, in whose term this engine must not write.
 */
export function ledDisk(disk: SharedDisk, nodeId: string, seen: LeaderRow, events: LedDiskEvents): Disk {
  let known: LeaderRow | null = seen
  let isOver = false
  const end = () => {
    isOver = true
    events.lost()
  }
  const guarded =
    <Arguments extends unknown[], Result>(run: (...given: Arguments) => Promise<Result>) =>
    (...given: Arguments): Promise<Result> =>
      isOver || events.over.aborted ? Promise.reject(deposed()) : run(...given)
  const open = async (): Promise<OpenedDisk> => {
    const row = known ?? (await disk.readLeaderRow())
    if (known === null && row.leader?.nodeId !== nodeId) {
      end()
      throw deposed()
    }
    known = null
    const opened = await disk.open(row.leaderTerm)
    events.opened(opened.leaderTerm, opened.now)
    return opened
  }
  return {
    open: guarded(open),
    openTasks: guarded((after, limit) => disk.openTasks(after, limit)),
    openLanes: guarded((after, limit) => disk.openLanes(after, limit)),
    leases: guarded((after, limit) => disk.leases(after, limit)),
    levels: guarded(() => disk.levels()),
    tasksNamed: guarded((names) => disk.tasksNamed(names)),
    tasksById: guarded((ids) => disk.tasksById(ids)),
    lanesById: guarded((ids) => disk.lanesById(ids)),
    lanesOf: guarded((task, levels) => disk.lanesOf(task, levels)),
    lanesFrom: guarded((query) => disk.lanesFrom(query)),
    partitionsById: guarded((ids) => disk.partitionsById(ids)),
    partitionsNamed: guarded((asked) => disk.partitionsNamed(asked)),
    rows: guarded((queries) => disk.rows(queries)),
    waiting: guarded((queries) => disk.waiting(queries)),
    keys: guarded((names) => disk.keys(names)),
    dueBackoffs: guarded((now, limit) => disk.dueBackoffs(now, limit)),
    append: guarded((entry) => disk.append(entry)),
    flush: guarded((images, upTo) => disk.flush(images, upTo)),
    stage: guarded((rows) => disk.stage(rows)),
    unstage: guarded((ids) => disk.unstage(ids)),
    known: guarded((asked) => disk.known(asked)),
    doneRows: guarded((task) => disk.doneRows(task)),
    leasedOrDelayed: guarded((limit) => disk.leasedOrDelayed(limit)),
    dueKeys: guarded((now, limit) => disk.dueKeys(now, limit)),
    purgeable: guarded((finishedBefore) => disk.purgeable(finishedBefore)),
    tasksWithReruns: guarded((limit) => disk.tasksWithReruns(limit)),
    tasksWithStagedRows: guarded(() => disk.tasksWithStagedRows()),
    taskDetail: guarded((taskId) => disk.taskDetail(taskId)),
    taskPage: guarded((query) => disk.taskPage(query)),
    taskSummaries: guarded((ids) => disk.taskSummaries(ids)),
    tasksWithTables: guarded((ids, tables) => disk.tasksWithTables(ids, tables)),
    throughput: guarded((query) => disk.throughput(query)),
    forgetThroughput: guarded((request) => disk.forgetThroughput(request)),
    recordInstances: guarded((heartbeats, now) => disk.recordInstances(heartbeats, now)),
    instance: guarded((instanceId, now) => disk.instance(instanceId, now)),
    instances: guarded((query, now) => disk.instances(query, now)),
    activeInstances: guarded((since, limit) => disk.activeInstances(since, limit)),
    forgetInstances: guarded((unseen, ended, limit) => disk.forgetInstances(unseen, ended, limit)),
    outbox: {
      subscriptions: guarded(() => disk.outbox.subscriptions()),
      deliveries: guarded((query) => disk.outbox.deliveries(query)),
      backlogs: guarded((subscriptions) => disk.outbox.backlogs(subscriptions)),
    },
    probe: guarded((now) => disk.probe(now)),
    hasSpace: () => disk.hasSpace(),
    recount: guarded(() => disk.recount()),
    /** The shared disk stays open for the next leadership. */
    close: async () => {
      isOver = true
    },
  }
}

const deposed = () => new LeaderUnavailable('another node is the leader now; send the request again')

/**
 * The leader's clock: the database's clock at the take-over plus monotonic time since then. If the clock of
 * this machine or of the database is set, it has no effect until the next take-over. The time never goes
 * back.
 */
export class LeaderClock {
  #ahead = 0
  #last = 0

  /** `now` is the database's clock, just read. */
  set(now: number): void {
    this.#ahead = now - performance.now()
  }

  readonly now: WallClock = () => {
    this.#last = Math.max(this.#last, Math.floor(performance.now() + this.#ahead))
    return this.#last
  }
}

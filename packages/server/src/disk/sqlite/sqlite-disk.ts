import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Disk } from '../../handoff/disk.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import { asUnavailable } from './failures.ts'
import { DataFolder } from './folder.ts'
import { Session } from './session.ts'

const SPACE_CHECK_MILLIS = 1000

/** The data file for as long as the service runs. It is opened again after the disk failed. */
export class OpenFile {
  readonly #folder: DataFolder
  #database: DatabaseSync | undefined
  #session: Session | undefined
  #space = { checkedAt: Number.NEGATIVE_INFINITY, enough: true }

  constructor(path: string) {
    this.#folder = new DataFolder(path)
  }

  /** Returns what to tell the operator. Throws StoreRefused when the folder cannot or must not be used. */
  lock(): readonly string[] {
    this.#folder.lock()
    try {
      this.session()
      return this.#folder.closeToOthers()
    } catch (error) {
      this.#abandon()
      this.#folder.unlock()
      throw this.#folder.refusal(error)
    }
  }

  session(): Session {
    if (this.#session === undefined) {
      this.#database = this.#folder.open()
      this.#session = new Session(this.#database)
    }
    return this.#session
  }

  /** What to tell the caller. After the disk failed nothing that the connection remembers is to be trusted. */
  failed(error: unknown): unknown {
    const unavailable = asUnavailable(error)
    if (unavailable === undefined) return error
    this.#abandon()
    return unavailable
  }

  close(): void {
    this.#abandon()
    this.#folder.unlock()
  }

  /** A call to the operating system, so not for each call-back while there is enough. */
  hasSpace(): boolean {
    const at = performance.now()
    if (at - this.#space.checkedAt >= SPACE_CHECK_MILLIS || !this.#space.enough)
      this.#space = { checkedAt: at, enough: this.#folder.hasSpace() }
    return this.#space.enough
  }

  #abandon(): void {
    this.#session = undefined
    try {
      this.#database?.close()
    } catch {
      // It was unusable; that is why it goes.
    }
    this.#database = undefined
  }
}

export interface SqliteDiskOptions {
  readonly folder: string
  /** For what an operator should know of the folder, in words. */
  readonly warn?: ((text: string) => void) | undefined
}

/**
 * Resolves when the data folder is locked and its file has the schema of this program; rejects with StoreRefused when it must
 * not be used.
 *
 * SQLite is synchronous, and so is this: a transaction keeps the event loop until it is on the disk. On a thread of its own
 * it was slower, because taking batches there and back cost more than the loop could do meanwhile (decision 0023).
 */
export async function openSqliteDisk({ folder, warn }: SqliteDiskOptions): Promise<Disk> {
  const file = new OpenFile(resolve(folder))
  for (const text of file.lock()) warn?.(text)
  let closed = false
  const call = async <Result>(work: (session: Session) => Result): Promise<Result> => {
    if (closed) throw new StoreUnavailable('store_unavailable', 'the store is closed')
    try {
      return work(file.session())
    } catch (error) {
      throw file.failed(error)
    }
  }
  return {
    open: () => call((session) => session.open()),
    load: (needs) => call(({ loads }) => loads.load(needs)),
    append: (entry) => call((session) => session.append(entry)),
    flush: (images, upTo) => call((session) => session.flush(images, upTo)),
    stage: (rows) => call((session) => session.stage(rows)),
    unstage: (ids) => call((session) => session.unstage(ids)),
    known: (asked) => call(({ maintenance }) => asked.map((one) => maintenance.known(one))),
    due: (now, limit, leases) => call(({ maintenance }) => maintenance.due(now, limit, leases)),
    heldBy: (instanceId, limit) => call(({ instances }) => instances.heldBy(instanceId, limit)),
    underWay: (limit) => call(({ views }) => views.underWay(limit)),
    dueKeys: (now, limit) => call(({ maintenance }) => maintenance.dueKeys(now, limit)),
    purgeable: (finishedBefore) => call(({ maintenance }) => maintenance.purgeable(finishedBefore)),
    unfinishedWork: (limit) => call(({ maintenance }) => maintenance.unfinishedWork(limit)),
    taskDetail: (taskId) => call(({ views }) => views.detail(taskId)),
    taskPage: (query) => call(({ views }) => views.page(query)),
    taskSummaries: (ids) => call(({ views }) => views.summaries(ids)),
    tasksWithTables: (ids, tables) => call(({ views }) => views.withTables(ids, tables)),
    throughput: (query) => call(({ throughput }) => throughput.read(query)),
    forgetThroughput: (order) =>
      call((session) => session.transaction(() => session.throughput.forget(order))),
    recordInstances: (heartbeats, now) =>
      call((session) => session.transaction(() => session.instances.record(heartbeats, now))),
    instance: (instanceId, now) => call(({ instances }) => instances.get(instanceId, now)),
    instances: (query, now) => call(({ instances }) => instances.list(query, now)),
    forgetInstances: (unseenSince, endedSince, limit) =>
      call((session) => session.transaction(() => session.instances.forget(unseenSince, endedSince, limit))),
    outbox: {
      subscriptions: () => call(({ outbox }) => outbox.subscriptions()),
      deliveries: (query) => call(({ outbox }) => outbox.deliveries(query)),
      backlogs: (subscriptions) => call(({ outbox }) => outbox.backlogs(subscriptions)),
    },
    probe: (now) => call((session) => session.probe(now)),
    hasSpace() {
      try {
        return file.hasSpace()
      } catch (error) {
        throw file.failed(error)
      }
    },
    recount: () => call(({ maintenance }) => maintenance.recount()),
    async close() {
      if (closed) return
      closed = true
      file.close()
    },
  }
}

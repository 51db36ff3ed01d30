import { resolve } from 'node:path'
import type { Disk } from '../../handoff/disk.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import { OpenFile } from './open-file.ts'
import type { Session } from './session.ts'

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
    known: (asked) => call(({ upkeep }) => asked.map((one) => upkeep.known(one))),
    due: (now, limit, leases) => call(({ upkeep }) => upkeep.due(now, limit, leases)),
    heldBy: (instanceId, limit) => call(({ instances }) => instances.heldBy(instanceId, limit)),
    underWay: (limit) => call(({ views }) => views.underWay(limit)),
    dueKeys: (now, limit) => call(({ upkeep }) => upkeep.dueKeys(now, limit)),
    purgeable: (finishedBefore) => call(({ upkeep }) => upkeep.purgeable(finishedBefore)),
    unfinishedWork: (limit) => call(({ upkeep }) => upkeep.unfinishedWork(limit)),
    taskDetail: (taskId) => call(({ views }) => views.detail(taskId)),
    taskPage: (query) => call(({ views }) => views.page(query)),
    taskSummaries: (ids) => call(({ views }) => views.summaries(ids)),
    recordInstances: (sightings, now) =>
      call((session) => session.transaction(() => session.instances.record(sightings, now))),
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
    recount: () => call(({ upkeep }) => upkeep.recount()),
    async close() {
      if (closed) return
      closed = true
      file.close()
    },
  }
}

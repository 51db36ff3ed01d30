import { type Store, storeClosed } from '../store.ts'
import type { ParkedNotice } from '../views/queries.ts'
import { Exclusive } from './exclusive.ts'
import { type EngineOptions, Runner } from './runner.ts'
import { ChangeLog } from './state/change-log.ts'
import { EndedAttempts } from './state/ended-attempts.ts'
import type { Transaction } from './transaction.ts'
import { mayAnswerWithoutEntry, runBatch } from './verbs/batch.ts'
import { control } from './verbs/control.ts'
import { LargeCallBacks } from './verbs/large-call-back.ts'
import { MaintenanceSteps } from './verbs/maintenance-steps.ts'
import { pauseInstance, revokeLease, revokeLeases } from './verbs/revoke.ts'
import { Subscriptions } from './verbs/subscriptions.ts'
import { Sweeps } from './verbs/sweeps.ts'
import { setTable } from './verbs/tables.ts'
import { engineViews } from './views.ts'

/** Opens a store: the engine decides in memory, and a disk makes the decisions durable. */
export async function openEngine(options: EngineOptions): Promise<Store> {
  const { disk, policy } = options
  const changeLog = new ChangeLog(options.secret().slice(0, 8).replaceAll('-', '_'))
  const endedAttempts = new EndedAttempts()
  const runner = new Runner(options, (tx) => {
    sweeps.committed(tx)
    changeLog.add(
      tx.touchedTasks.map(({ row }) => row.id),
      parkedNotices(tx),
    )
    for (const ended of tx.endedAttempts) endedAttempts.add(ended)
  })
  const exclusive = new Exclusive(runner, async () => {
    await largeCallBacks.removeAbandonedRows()
    sweeps.opened()
    endedAttempts.since ??= runner.now
  })
  const sweeps = new Sweeps(disk, runner)
  const largeCallBacks = new LargeCallBacks(disk, runner, exclusive)
  const subscriptions = new Subscriptions(disk.outbox, runner, exclusive)
  const maintenance = new MaintenanceSteps(disk, runner, exclusive, subscriptions)
  await exclusive.run(async () => undefined)

  const runBatches: Store['runBatch'] = async (batch) => {
    if (exclusive.isClosed) throw storeClosed()
    const { callBacks } = batch
    if (callBacks.length > 0 && !hasSpace()) {
      const answers = await runBatches({ ...batch, callBacks: [] })
      return { ...answers, callBacks: callBacks.map(() => ({ kind: 'store_full' })) }
    }
    const [first] = callBacks
    if (first !== undefined && largeCallBacks.isLarge(first)) return largeCallBacks.run(first)
    while (largeCallBacks.isRunning(callBacks)) await largeCallBacks.whenEnded(callBacks)
    return exclusive.transact(
      (tx) => runBatch(tx, batch),
      (answers) => !runner.leadsForCertain || !mayAnswerWithoutEntry(batch, answers),
    )
  }

  /** If the disk cannot answer, memory is dropped and read from the disk again. */
  const hasSpace = (): boolean => {
    try {
      return disk.hasSpace()
    } catch (error) {
      runner.drop()
      throw error
    }
  }

  return {
    ...engineViews({ disk, policy, node: options.node, exclusive, changeLog, endedAttempts }),
    runBatch: runBatches,
    runsAlone: (batched) => largeCallBacks.isLarge(batched) || largeCallBacks.isRunning([batched]),
    sweep: (request) => exclusive.runFlushedAhead(() => sweeps.run(request)),
    maintain: (request) => maintenance.run(request),
    control: (request) => {
      // These verbs find partitions by their state on disk.
      const findsRows = request.verb === 'retry' || request.verb === 'skip-parked'
      const run = () => runner.transact((tx) => control(tx, request))
      return findsRows ? exclusive.runFlushed(run) : exclusive.run(run)
    },
    setTable: (change) => exclusive.transact(async (tx) => setTable(tx, change)),
    revokeLeases: (request) => exclusive.transact((tx) => revokeLeases(tx, request)),
    revokeLease: (lease) => exclusive.transact((tx) => revokeLease(tx, lease)),
    pauseInstance: (request) => exclusive.transact(async (tx) => pauseInstance(tx, request)),
    subscriptions: (request) => subscriptions.answer(request),
    deliver: (request) => subscriptions.deliver(request),
    recordHeartbeats: (heartbeats) => exclusive.run(() => disk.recordInstances(heartbeats, runner.now)),
    probe: () => exclusive.run(() => disk.probe(runner.now)),
    close: async () => {
      if (exclusive.isClosed) return
      exclusive.isClosed = true
      await largeCallBacks.whenAllEnded()
      await exclusive.end()
      await runner.close()
    },
  }
}

/** For watchers: partitions that the transaction parked and that are still parked. */
const parkedNotices = ({ parked }: Transaction): ParkedNotice[] =>
  parked
    .filter(({ state }) => state === 'parked')
    .map(({ parentLane: lane, index, spelling, attempts, reason }) => ({
      taskId: lane.parentTask.taskId,
      level: lane.level,
      index,
      spelling,
      attempts,
      reason,
    }))

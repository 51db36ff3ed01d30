import type { Entry } from '../../packages/server/src/handoff/engine/entry.ts'
import { Leases } from '../../packages/server/src/handoff/engine/state/leases.ts'
import { Transaction } from '../../packages/server/src/handoff/engine/transaction.ts'
import type { EndedAttempt } from '../../packages/server/src/handoff/rules/attempts.ts'
import type { TaskSettingsChange } from '../../packages/server/src/handoff/rules/policy.ts'
import type { HandOffBatch } from '../../packages/server/src/handoff/store.ts'
import type { StoredTask } from '../../packages/server/src/handoff/stored.ts'
import { type Mutant, onDisk, patched, withCalls } from './mutants.ts'
import type { Parts } from './simulation.ts'

/** Pulls other than those that were requested. */
const withPulls = (change: (pulls: HandOffBatch['pulls']) => HandOffBatch['pulls']): Partial<Parts> =>
  withCalls((store) => {
    const runBatch = store.runBatch.bind(store)
    return { runBatch: (batch) => runBatch({ ...batch, pulls: change(batch.pulls) }) }
  })

const withSettings = (change: (settings: TaskSettingsChange) => TaskSettingsChange): Partial<Parts> =>
  withCalls((store) => {
    const control = store.control.bind(store)
    return {
      control: (request) =>
        control(request.verb === 'settings' ? { ...request, settings: change(request.settings) } : request),
    }
  })

/** A task with settings is changed when open work is read. */
const loadedTasks = (change: (task: StoredTask) => StoredTask): Partial<Parts> =>
  onDisk((disk) => ({
    openTasks: async (after, limit) =>
      (await disk.openTasks(after, limit)).map((task) => (task.settings === null ? task : change(task))),
  }))

/** Every entry has a changed history of attempts. */
const withHistory = (
  change: (history: readonly EndedAttempt[]) => readonly EndedAttempt[],
): (() => () => void) =>
  patched(
    Transaction.prototype,
    'entry',
    (entry) =>
      function (this: Transaction) {
        const original = entry.call(this as never) as Entry
        const partitions = original.partitions.map(([id, status]): Entry['partitions'][number] => [
          id,
          status === null || status.history === null
            ? status
            : { ...status, history: change(status.history) },
        ])
        return { ...original, partitions }
      },
  )

/** Bugs in what pulls choose, in settings of tasks, in the history of attempts and in releases of instances. */
export const taskMutants: readonly Mutant[] = [
  {
    bug: 'a pull ignores the tables that it names',
    firstSeed: 3,
    parts: withPulls((pulls) => pulls.map((pull) => ({ ...pull, tables: null }))),
  },
  {
    bug: 'a pull ignores the tasks that it names',
    firstSeed: 3,
    parts: withPulls((pulls) => pulls.map((pull) => ({ ...pull, tasks: null }))),
  },
  {
    bug: 'a pull ignores all tables but the first',
    firstSeed: 3,
    parts: withPulls((pulls) => pulls.map((pull) => ({ ...pull, tables: pull.tables?.slice(0, 1) ?? null }))),
  },
  {
    bug: 'what came back is read without the table that a pull names',
    firstSeed: 5,
    isShort: true,
    parts: onDisk((disk) => ({
      waiting: (queries) =>
        disk.waiting(
          queries.map(({ table, ...query }) =>
            table === undefined || query.returned ? query : { ...query, table },
          ),
        ),
    })),
  },
  {
    bug: 'a task has one lease more than its limit',
    firstSeed: 5,
    parts: withSettings(({ maxLeases, ...settings }) => ({
      ...settings,
      ...(maxLeases == null ? {} : { maxLeases: maxLeases + 1 }),
    })),
  },
  {
    bug: 'a task has one lease less than its limit',
    firstSeed: 5,
    parts: withSettings(({ maxLeases, ...settings }) => ({
      ...settings,
      ...(maxLeases == null ? {} : { maxLeases: Math.max(1, maxLeases - 1) }),
    })),
  },
  {
    bug: 'a limit is not known after a take-over',
    firstSeed: 5,
    parts: loadedTasks((task) => ({ ...task, settings: { ...task.settings, maxLeases: 1_000_000 } })),
  },
  {
    bug: 'leases from before a take-over do not count towards a limit',
    firstSeed: 12,
    parts: loadedTasks((task) => ({ ...task, partitions: { ...task.partitions, leased: 0 } })),
  },
  {
    bug: 'a weight is ignored',
    firstSeed: 32,
    parts: withSettings(({ weight: _weight, ...settings }) => settings),
  },
  {
    bug: 'a weight is not known after a take-over',
    firstSeed: 32,
    parts: loadedTasks((task) => ({ ...task, settings: { ...task.settings, weight: 1 } })),
  },
  {
    bug: 'the attempts of a task are ignored',
    firstSeed: 50,
    parts: withSettings(({ maxAttempts: _attempts, ...settings }) => settings),
  },
  {
    bug: 'a view does not know which level is open',
    parts: withCalls((store) => {
      const task = store.task.bind(store)
      return {
        task: async (taskId) => {
          const shown = await task(taskId)
          return shown && { ...shown, openLane: null }
        },
      }
    }),
  },
  {
    bug: 'a page of partitions repeats the last one of the page before',
    firstSeed: 6,
    parts: withCalls((store) => {
      const partitions = store.partitions.bind(store)
      return {
        partitions: ({ after, ...query }) =>
          partitions({ ...query, after: after && { ...after, at: after.at - 1 } }),
      }
    }),
  },
  {
    bug: 'an attempt that was released is missing in the history',
    patch: withHistory((history) => history.filter(({ outcome }) => outcome !== 'released')),
  },
  {
    bug: 'the history keeps one attempt less',
    firstSeed: 13,
    steps: 2000,
    patch: withHistory((history) => history.slice(-9)),
  },
  {
    bug: 'a history that was flushed is forgotten',
    parts: onDisk((disk) => ({
      leases: async (after, limit) =>
        (await disk.leases(after, limit)).map((row) => ({ ...row, history: null })),
    })),
  },
  {
    bug: 'a release forgets a lease',
    firstSeed: 2,
    patch: patched(
      Leases.prototype,
      'heldBy',
      (heldBy) =>
        function (this: Leases, ...args: never[]) {
          return (heldBy.apply(this, args) as unknown[]).slice(1)
        },
    ),
  },
]

import { InstanceChanges } from '../../packages/server/src/handoff/engine/instance-changes.ts'
import type { Partition } from '../../packages/server/src/handoff/engine/state/memory-rows.ts'
import { Order } from '../../packages/server/src/handoff/engine/state/order.ts'
import { Tables } from '../../packages/server/src/handoff/engine/state/tables.ts'
import { WaitingPartitions } from '../../packages/server/src/handoff/engine/waiting-partitions.ts'
import type { StoredTableSettings } from '../../packages/server/src/handoff/stored.ts'
import { type Mutant, onDisk, patched, withCalls } from './mutants.ts'

/** Settings of tables are stored and answered as they are, and are others in memory. */
const withTables = (change: (settings: StoredTableSettings) => StoredTableSettings): (() => () => void) =>
  patched(
    Tables.prototype,
    'setSettings',
    (setSettings) =>
      function (this: Tables, ...args: never[]) {
        const [settings] = args as unknown as [StoredTableSettings]
        return setSettings.call(this, change(settings) as never)
      },
  )

/** Leases of every fifth partition are not counted. */
const counting = (name: 'leaseBegan' | 'leaseEnded'): (() => () => void) =>
  patched(
    Order.prototype,
    name,
    (count) =>
      function (this: Order, ...args: never[]) {
        const [{ id }] = args as unknown as [Partition]
        return id % 5 === 0 ? undefined : count.apply(this, args)
      },
  )

/** Bugs in limits and pauses of tables, pauses of instances, releases, fencing tokens and checkpoints. */
export const operatorMutants: readonly Mutant[] = [
  {
    bug: 'some leases do not count towards the limit of their table',
    firstSeed: 6,
    patch: () => {
      const restore = [counting('leaseBegan'), counting('leaseEnded')].map((patch) => patch())
      return () => {
        for (const one of restore) one()
      }
    },
  },
  {
    bug: 'a paused table is handed out',
    patch: withTables((settings) => ({ ...settings, paused: false })),
  },
  {
    bug: 'settings of tables are not known after a take-over',
    parts: onDisk(() => ({ tableSettings: async () => [] })),
  },
  {
    bug: 'a paused instance gets partitions',
    firstSeed: 10,
    patch: patched(
      InstanceChanges.prototype,
      'pause',
      (pause) =>
        function (this: InstanceChanges, ...args: never[]) {
          const pausedAt = pause.apply(this, args)
          this.memory.pausedInstances.clear()
          return pausedAt
        },
    ),
  },
  {
    bug: 'the pause of an instance is not known after a take-over',
    firstSeed: 10,
    parts: onDisk(() => ({ pausedInstances: async () => [] })),
  },
  {
    bug: 'the release of a partition takes its neighbour',
    parts: withCalls((store) => {
      const revokeLease = store.revokeLease.bind(store)
      return { revokeLease: (lease) => revokeLease({ ...lease, index: lease.index + 1 }) }
    }),
  },
  {
    bug: 'what failed before a take-over does not count towards the pause of its task',
    firstSeed: 2,
    parts: onDisk((disk) => ({
      openTasks: async (after, limit) =>
        (await disk.openTasks(after, limit)).map((task) => ({ ...task, failureWindow: '' })),
    })),
  },
  {
    bug: 'a partition whose back-off has ended keeps that time when it is released',
    firstSeed: 2,
    patch: () => {
      const ended = new WeakMap<Partition, number | null>()
      const restore = [
        patched(
          WaitingPartitions.prototype,
          'serve',
          (serve) =>
            function (this: WaitingPartitions, ...args: never[]) {
              const [partition] = args as unknown as [Partition]
              ended.set(partition, partition.dueAt)
              return serve.apply(this, args)
            },
        ),
        patched(
          WaitingPartitions.prototype,
          'add',
          (add) =>
            function (this: WaitingPartitions, ...args: never[]) {
              const [partition] = args as unknown as [Partition]
              if (partition.outcome === 'released') partition.dueAt = ended.get(partition) ?? partition.dueAt
              return add.apply(this, args)
            },
        ),
      ].map((patch) => patch())
      return () => {
        for (const one of restore) one()
      }
    },
  },
  {
    bug: 'a fencing token is forgotten at a take-over',
    parts: onDisk((disk) => ({
      leases: async (after, limit) =>
        (await disk.leases(after, limit)).map((row) => ({ ...row, fencingToken: null })),
    })),
  },
  {
    bug: 'a checkpoint that was flushed is forgotten',
    firstSeed: 2,
    parts: onDisk(() => ({ checkpoints: async () => [] })),
  },
]

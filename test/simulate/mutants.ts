import { DatabaseSync } from 'node:sqlite'
import { FlushedRows } from '../../packages/server/src/disk/sqlite/flush.ts'
import { SqliteConnection } from '../../packages/server/src/disk/sqlite/sqlite-connection.ts'
import type { Disk, RowChanges } from '../../packages/server/src/handoff/disk.ts'
import { openEngine } from '../../packages/server/src/handoff/engine/engine-store.ts'
import { NewlyReady } from '../../packages/server/src/handoff/engine/newly-ready.ts'
import { Runner } from '../../packages/server/src/handoff/engine/runner.ts'
import { Order } from '../../packages/server/src/handoff/engine/state/order.ts'
import { Transaction } from '../../packages/server/src/handoff/engine/transaction.ts'
import { mayServe } from '../../packages/server/src/handoff/rules/task.ts'
import { type Store, StoreUnavailable } from '../../packages/server/src/handoff/store.ts'
import { SimulatedNode } from './node.ts'
import type { Parts } from './simulation.ts'

export interface Mutant {
  readonly bug: string
  readonly parts?: Partial<Parts>
  /** Changes the program itself; the returned function restores it. */
  readonly patch?: () => () => void
  /**
   * The seed at which the search starts, so that it ends soon. If it no longer finds the bug, all other seeds
   * are tried.
   */
  readonly firstSeed?: number
  /** For a bug that shows only in long episodes. */
  readonly steps?: number
  /** One of its kind that is found soon: `npm test` runs only these. */
  readonly isShort?: true
}

/** The engine on a disk with some changed operations. */
export function onDisk(change: (disk: Disk) => Partial<Disk>): Partial<Parts> {
  return {
    engine: (options) => {
      const changes = change(options.disk)
      const disk = new Proxy(options.disk, {
        get: (real, name) => {
          const value = Reflect.get(changes, name) ?? Reflect.get(real, name)
          return typeof value === 'function' ? value.bind(real) : value
        },
      })
      return openEngine({ ...options, disk })
    },
  }
}

/** The engine behind a layer that changes its calls. */
export function withCalls(change: (store: Store) => Partial<Store>): Partial<Parts> {
  return {
    engine: async (options) => {
      const store = await openEngine(options)
      return Object.assign(store, change(store))
    },
  }
}

export function patched<Name extends string>(
  prototype: { [name in Name]: unknown },
  name: Name,
  replace: (original: (...args: never[]) => unknown) => (...args: never[]) => unknown,
): () => () => void {
  return () => {
    const original = prototype[name]
    prototype[name] = replace(original as (...args: never[]) => unknown)
    return () => {
      prototype[name] = original
    }
  }
}

/** A write is not refused when another process has taken over. */
const unfenced = (name: 'append' | 'flush' | 'stage'): (() => () => void) =>
  patched(
    SqliteConnection.prototype,
    name,
    (write) =>
      function (this: SqliteConnection, ...args: never[]) {
        this.fence = () => undefined
        try {
          return write.apply(this, args)
        } finally {
          Reflect.deleteProperty(this, 'fence')
        }
      },
  )

/** The check before each write is another one. */
const withFence = (change: (text: string) => string): (() => () => void) =>
  patched(
    DatabaseSync.prototype,
    'prepare',
    (prepare) =>
      function (this: DatabaseSync, text: string) {
        const isFence = text.includes('flushed WHERE id = 1 AND term = ?')
        return prepare.call(this, (isFence ? change(text) : text) as never)
      },
  )

/** Bugs that are inserted on purpose. */
export const mutants: readonly Mutant[] = [
  {
    bug: 'the end of a lease gives its fencing token back',
    patch: patched(
      Transaction.prototype,
      'touchPartition',
      (touch) =>
        function (this: Transaction, ...args: never[]) {
          const [partition] = args as unknown as Parameters<Transaction['touchPartition']>
          if (partition.state === 'leased' && partition.fencingToken !== null) partition.fencingToken -= 1
          return touch.apply(this, args)
        },
    ),
  },
  {
    bug: 'an append does not check the entry before it',
    isShort: true,
    patch: unfenced('append'),
  },
  {
    bug: 'an append is sent again after doubt',
    firstSeed: 2,
    parts: onDisk((disk) => ({
      append: async (entry) => {
        try {
          await disk.append(entry)
        } catch (error) {
          if (!(error instanceof StoreUnavailable)) throw error
          const { last } = await disk.open()
          await disk.append({ ...entry, number: last + 1 })
        }
      },
    })),
  },
  {
    bug: 'a flush has no compare-and-set',
    firstSeed: 2,
    patch: unfenced('flush'),
  },
  {
    bug: 'a piece of a call-back is written without the fence',
    firstSeed: 5,
    patch: unfenced('stage'),
  },
  {
    bug: 'a write checks the term alone, which a standby without the last commits has, too',
    firstSeed: 3,
    patch: withFence((text) => text.replace(/writes = \?[\s\S]*$/, '(? + ? + ? + ?) IS NOT NULL')),
  },
  {
    bug: 'an answer does not wait for its append',
    isShort: true,
    parts: onDisk((disk) => ({
      append: async (entry) => {
        disk.append(entry).catch(() => undefined)
      },
    })),
  },
  {
    bug: 'rows beyond the tail count',
    firstSeed: 48,
    parts: onDisk((disk) => ({
      waiting: (queries) =>
        disk.waiting(queries.map((query) => ({ ...query, upTo: Number.MAX_SAFE_INTEGER }))),
      known: (asked) => disk.known(asked.map((one) => ({ ...one, tail: Number.MAX_SAFE_INTEGER }))),
    })),
  },
  {
    bug: 'memory is kept after its append failed',
    firstSeed: 2,
    isShort: true,
    patch: patched(Runner.prototype, 'drop', () => () => undefined),
  },
  {
    bug: 'memory keeps the changes of a transaction that failed',
    firstSeed: 2,
    patch: patched(Transaction.prototype, 'restore', () => () => undefined),
  },
  {
    bug: 'entries that were not flushed are forgotten at a take-over',
    isShort: true,
    parts: onDisk((disk) => ({ open: async () => ({ ...(await disk.open()), unflushed: [] }) })),
  },
  {
    bug: 'a flush leaves a row out',
    firstSeed: 2,
    parts: onDisk((disk) => ({
      flush: (rowChanges, upTo) => {
        for (const id of rowChanges.partitions.keys()) if (id % 97 === 0) rowChanges.partitions.delete(id)
        return disk.flush(rowChanges, upTo)
      },
    })),
  },
  {
    bug: 'a flush adds to the history twice',
    isShort: true,
    patch: patched(
      FlushedRows.prototype,
      'write',
      (write) =>
        function (this: FlushedRows, rowChanges: RowChanges) {
          const twice = [...rowChanges.throughput].flatMap(
            ([key, row]) =>
              [
                [key, row],
                [`${key} again`, row],
              ] as const,
          )
          write.call(this, { ...rowChanges, throughput: new Map(twice) } as never)
        },
    ),
  },
  {
    bug: 'a counter is not moved',
    isShort: true,
    patch: patched(
      Transaction.prototype,
      'count',
      (count) =>
        function (this: Transaction, ...args: never[]) {
          const [, to] = args as unknown as Parameters<Transaction['count']>
          return to === 'parked' ? undefined : count.apply(this, args)
        },
    ),
  },
  {
    bug: 'a key is forgotten',
    firstSeed: 2,
    isShort: true,
    patch: patched(
      Transaction.prototype,
      'remember',
      (remember) =>
        function (this: Transaction, ...args: never[]) {
          const [key] = args as unknown as Parameters<Transaction['remember']>
          return key.endsWith('7') ? undefined : remember.apply(this, args)
        },
    ),
  },
  {
    bug: 'a sweep asks whether leases may expire when it is queued',
    parts: withCalls((store) => {
      const sweep = store.sweep.bind(store)
      return {
        sweep: ({ limit, mayExpireLeases }) => {
          const mayExpire = mayExpireLeases()
          return sweep({ limit, mayExpireLeases: () => mayExpire })
        },
      }
    }),
  },
  {
    bug: 'no grace begins when a node takes over that followed without requests',
    firstSeed: 2,
    patch: patched(
      SimulatedNode.prototype,
      'tookOver',
      (tookOver) =>
        function (this: SimulatedNode) {
          if (this.isStarting) tookOver.call(this as never)
        },
    ),
  },
  {
    bug: 'a pull takes the hint of its batch from other waiting pulls',
    parts: withCalls((store) => {
      const runBatch = store.runBatch.bind(store)
      return {
        runBatch: async (batch) => {
          const answers = await runBatch(batch)
          const isTaken = answers.pulls.some(({ partitions }) => partitions.length > 0)
          return isTaken ? { ...answers, newlyReady: 0, newlyReadyOf: [] } : answers
        },
      }
    }),
  },
  {
    bug: 'other waiting pulls get no hint of ended back-offs',
    firstSeed: 3,
    parts: withCalls((store) => {
      const sweep = store.sweep.bind(store)
      return { sweep: async (request) => ({ ...(await sweep(request)), newlyReadyOf: [] }) }
    }),
  },
  {
    bug: 'other waiting pulls get no hint of what came back',
    isShort: true,
    patch: patched(
      NewlyReady.prototype,
      'add',
      (add) =>
        function (this: NewlyReady, ...args: never[]) {
          const [, , count] = args as unknown as Parameters<NewlyReady['add']>
          return count === 1 ? undefined : add.apply(this, args)
        },
    ),
  },
  {
    bug: 'other waiting pulls get no hint of a task that continues',
    firstSeed: 3,
    patch: patched(
      NewlyReady.prototype,
      'add',
      (add) =>
        function (this: NewlyReady, ...args: never[]) {
          const [, table] = args as unknown as Parameters<NewlyReady['add']>
          return table === null ? undefined : add.apply(this, args)
        },
    ),
  },
  {
    bug: 'a lease is not undone',
    firstSeed: 2,
    parts: withCalls((store) => {
      const runBatch = store.runBatch.bind(store)
      return {
        runBatch: async (batch) => ({
          ...(await runBatch({ ...batch, undos: [] })),
          undone: batch.undos.length,
        }),
      }
    }),
  },
  {
    bug: 'the highest level goes first',
    firstSeed: 3,
    isShort: true,
    patch: patched(
      Order.prototype,
      'front',
      (front) =>
        function (this: Order, ...args: never[]) {
          const open = this.ahead(Number.MAX_SAFE_INTEGER).filter(({ parentTask: owner, level }) =>
            mayServe(owner, level),
          )
          const highest = open.toSorted((a, b) => b.level - a.level)[0]
          return highest ?? front.apply(this, args)
        },
    ),
  },
]

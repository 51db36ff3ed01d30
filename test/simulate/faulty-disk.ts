import {
  type Appended,
  type Disk,
  KnownKeys,
  type OpenedDisk,
  type RowChanges,
} from '../../packages/server/src/handoff/disk.ts'
import type { PartitionDescriptor } from '../../packages/server/src/handoff/partition.ts'
import { StoreUnavailable } from '../../packages/server/src/handoff/store.ts'
import type { StagedIds } from '../../packages/server/src/handoff/stored.ts'
import type { MemoryDatabase } from '../../packages/server/test/support/memory-database.ts'
import type { Chance } from '../chaos/support/chance.ts'
import type { VirtualTime } from './virtual-time.ts'

/** How often operations on a disk fail: shares of all operations. */
export interface DiskFaults {
  /** Refused, without an effect. */
  readonly fails: number
  /** Executed, but the answer is lost. */
  readonly doubt: number
  /** Refused, but executed later. */
  readonly late: number
  /** Reads that are refused. */
  readonly reads: number
}

/** The process that a disk belongs to, as seen from outside. */
export interface Host {
  readonly time: VirtualTime
  readonly chance: Chance
  readonly faults: DiskFaults
  /** The database does not answer until then. */
  readonly outageUntil: number
  /** How often a standby has taken over: what was sent to the database before does not reach it. */
  readonly failOvers: number
  /** Until then it neither sends nor receives anything. */
  readonly frozenUntil: number
  /** It was killed: what it sent may still arrive, but it receives no answer. */
  readonly isDead: boolean
  /** A fault occurred. */
  meet(fault: 'write fails' | 'write in doubt' | 'write late' | 'read fails'): void
  /** Whether it may try to take over. */
  mayOpen(): boolean
  /** It took over. Called before anything else happens. */
  opened(): void
  flushing(upTo: number): void
  /** A flush has reached the database. */
  wrote(rowChanges: RowChanges): void
  /** It starts to append. */
  appending(entry: Appended): Appending
}

/** Is notified about the progress of an append. */
export interface Appending {
  /** Called before the append reaches the database, or before its answer reaches the process. */
  isUnderWay(): void
  isDurable(): void
  /** The process learns that keys are known, and runs the batch again. */
  isRunAgain(): void
}

type Fate = 'carried out' | 'write fails' | 'write in doubt' | 'write late'

const SLOWEST_MILLIS = 5
const LATEST_MILLIS = 400

/** The disk of one process of a node, on the database that all share. Operations take time and may fail. */
export function faultyDisk(database: MemoryDatabase, host: Host): Disk {
  const faulty = new FaultyWrites(database, host)
  const writes: Partial<Disk> = {
    open: () => faulty.open(),
    append: (entry) => faulty.append(entry),
    flush: (rowChanges, upTo) => faulty.flush(rowChanges, upTo),
    stage: (rows) => faulty.stage(rows),
    unstage: (ids) => faulty.unstage(ids),
    hasSpace: () => true,
    close: () => faulty.disk.close(),
  }
  type Reads = Record<string | symbol, (...given: unknown[]) => Promise<unknown>>
  const read =
    (part: (disk: Disk) => object, name: string | symbol) =>
    (...given: unknown[]) =>
      faulty.read(async (disk) => (part(disk) as Reads)[name]?.(...given))
  const outbox = new Proxy({}, { get: (_, name) => read((disk) => disk.outbox, name) })
  return new Proxy({ ...writes, outbox } as Disk, {
    get: (own, name) => Reflect.get(own, name) ?? read((disk) => disk, name),
  })
}

class FaultyWrites {
  readonly #database: MemoryDatabase
  readonly #host: Host
  /** Replaced each time it is opened: operations that were sent before carry the earlier term. */
  disk: Disk

  constructor(database: MemoryDatabase, host: Host) {
    this.#database = database
    this.#host = host
    this.disk = database.disk()
  }

  open(): Promise<OpenedDisk> {
    if (!this.#host.mayOpen()) return Promise.reject(unavailable('another node leads'))
    return this.#write(() => {
      this.disk = this.#database.disk()
      const opened = this.disk.open()
      this.#host.opened()
      return opened
    }, 0)
  }

  append(entry: Appended): Promise<void> {
    const appending = this.#host.appending(entry)
    const { disk } = this
    const append = () => disk.append(entry).then(appending.isDurable)
    return this.#write(append, 1, appending.isUnderWay).catch((error: unknown) => {
      if (error instanceof KnownKeys) appending.isRunAgain()
      throw error
    })
  }

  flush(rowChanges: RowChanges, upTo: number): Promise<void> {
    const { disk } = this
    this.#host.flushing(upTo)
    const flush = () => {
      const flushed = disk.flush(rowChanges, upTo)
      this.#host.wrote(rowChanges)
      return flushed
    }
    return this.#write(flush, 1)
  }

  stage(rows: readonly PartitionDescriptor[]): Promise<void> {
    const { disk } = this
    return this.#write(() => disk.stage(rows), 1)
  }

  unstage(ids: StagedIds): Promise<void> {
    const { disk } = this
    return this.#write(() => disk.unstage(ids), 1)
  }

  /** Most reads take no time, so that other events rarely happen during a read. */
  read<Answer>(read: (disk: Disk) => Promise<Answer>): Promise<Answer> {
    const { chance, faults } = this.#host
    if (chance.happens(faults.reads)) {
      this.#host.meet('read fails')
      return this.#later(() => Promise.reject(unavailable('a read failed')))
    }
    const isStill = this.#host.outageUntil > this.#host.time.now
    return !isStill && chance.happens(0.9) ? read(this.disk) : this.#later(() => read(this.disk))
  }

  #later<Answer>(act: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { chance, outageUntil, time } = this.#host
      const from = Math.max(0, outageUntil - time.now)
      this.#answer(from + chance.between(1, SLOWEST_MILLIS), () => act().then(resolve, reject))
    })
  }

  #write<Answer>(
    act: () => Promise<Answer>,
    share: number,
    isUnderWay: () => void = () => undefined,
  ): Promise<Answer> {
    const { chance } = this.#host
    const fate = this.#fate(share)
    if (fate !== 'carried out') this.#host.meet(fate)
    const there = chance.below(SLOWEST_MILLIS)
    // Mostly the answer comes at once; otherwise other events may happen between the operation and its
    // answer.
    const back = chance.happens(0.8) ? 0 : chance.between(1, SLOWEST_MILLIS)
    return new Promise((resolve, reject) => {
      const refuse = () =>
        reject(unavailable(fate === 'write fails' ? 'a write failed' : 'a write is in doubt'))
      switch (fate) {
        case 'carried out':
          this.#arrive(there, (isCut) => {
            isUnderWay()
            const done = isCut ? Promise.reject(unavailable('the connection was closed')) : act()
            if (back === 0 && !this.#isOut()) done.then(resolve, reject)
            else {
              // The failure is handled when the answer arrives.
              done.catch(() => undefined)
              this.#answer(back, () => done.then(resolve, reject))
            }
          })
          break
        case 'write fails':
          this.#answer(there, refuse)
          break
        case 'write in doubt':
          this.#arrive(there, (isCut) => {
            isUnderWay()
            if (!isCut) act().catch(() => undefined)
            this.#answer(back, refuse)
          })
          break
        case 'write late':
          this.#answer(there, () => {
            isUnderWay()
            this.#arrive(chance.below(LATEST_MILLIS), (isCut) => {
              if (!isCut) act().catch(() => undefined)
            })
            refuse()
          })
      }
    })
  }

  #fate(share: number): Fate {
    const { chance, faults } = this.#host
    const drawn = chance.below(1_000_000) / 1_000_000
    if (drawn < faults.fails) return 'write fails'
    if (drawn < faults.fails + faults.doubt) return 'write in doubt'
    return drawn < faults.fails + faults.doubt + faults.late * share ? 'write late' : 'carried out'
  }

  #isOut(): boolean {
    return this.#host.isDead || this.#host.frozenUntil > this.#host.time.now
  }

  /**
   * An operation reaches the database. A frozen process may not have sent it yet; a dead one may or may not
   * have sent it.
   */
  #arrive(millis: number, act: (isCut: boolean) => void, failOvers = this.#host.failOvers): void {
    const { time, chance } = this.#host
    time.after(millis, () => {
      const { frozenUntil, isDead, outageUntil } = this.#host
      if (isDead && chance.happens(0.5)) return
      if (outageUntil > time.now) return this.#arrive(outageUntil - time.now, act, failOvers)
      if (!isDead && frozenUntil > time.now && chance.happens(0.7))
        this.#arrive(frozenUntil - time.now + chance.below(SLOWEST_MILLIS), act, failOvers)
      else act(failOvers !== this.#host.failOvers)
    })
  }

  /** An answer reaches the process. */
  #answer(millis: number, act: () => void): void {
    const { time, chance } = this.#host
    time.after(millis, () => {
      const { frozenUntil, isDead } = this.#host
      if (isDead) return
      if (frozenUntil > time.now) this.#answer(frozenUntil - time.now + chance.below(SLOWEST_MILLIS), act)
      else act()
    })
  }
}

function unavailable(detail: string): StoreUnavailable {
  return new StoreUnavailable('store_unavailable', detail)
}

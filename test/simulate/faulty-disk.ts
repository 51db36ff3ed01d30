import { MemoryDisk } from '../../packages/server/src/disk/memory/memory-disk.ts'
import type { MemoryMedium } from '../../packages/server/src/disk/memory/memory-medium.ts'
import {
  type Appended,
  type Disk,
  type Images,
  KnownKeys,
  type Needs,
  type OpenedDisk,
} from '../../packages/server/src/handoff/disk.ts'
import type { OutboxDisk } from '../../packages/server/src/handoff/outbox.ts'
import type { PartitionDescriptor } from '../../packages/server/src/handoff/partition.ts'
import { StoreUnavailable } from '../../packages/server/src/handoff/store.ts'
import type { StagedIds } from '../../packages/server/src/handoff/stored.ts'
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
  /** Until then it neither sends nor receives anything. */
  readonly frozenUntil: number
  /** It was killed: what it sent may still arrive, but it receives no answer. */
  readonly isDead: boolean
  /** Whether it may try to take over. */
  mayOpen(): boolean
  /** It took over. Called before anything else happens. */
  opened(): void
  flushing(upTo: number): void
  /** It starts to append. */
  appending(entry: Appended): Appending
}

/** Is notified about the progress of an append. */
export interface Appending {
  /** Called before the append reaches the medium, or before its answer reaches the process. */
  isUnderWay(): void
  isDurable(): void
  /** The process learns that keys are known, and runs the batch again. */
  isRunAgain(): void
}

type Fate = 'carried out' | 'fails' | 'doubt' | 'late'

const SLOWEST_MILLIS = 5
const LATEST_MILLIS = 400

/** The disk of one process of a node, on the medium that all share. Operations take time and may fail. */
export class FaultyDisk implements Disk {
  readonly #medium: MemoryMedium
  readonly #host: Host
  /** Replaced each time it is opened: operations that were sent before carry the earlier term. */
  #disk: MemoryDisk

  constructor(medium: MemoryMedium, host: Host) {
    this.#medium = medium
    this.#host = host
    this.#disk = new MemoryDisk(medium)
  }

  open(): Promise<OpenedDisk> {
    if (!this.#host.mayOpen()) return Promise.reject(unavailable('another node leads'))
    return this.#write(() => {
      this.#disk = new MemoryDisk(this.#medium)
      const opened = this.#disk.open()
      this.#host.opened()
      return opened
    }, 0)
  }

  append(entry: Appended): Promise<void> {
    const appending = this.#host.appending(entry)
    const disk = this.#disk
    const append = () => disk.append(entry).then(appending.isDurable)
    return this.#write(append, 1, appending.isUnderWay).catch((error: unknown) => {
      if (error instanceof KnownKeys) appending.isRunAgain()
      throw error
    })
  }

  flush(images: Images, upTo: number): Promise<void> {
    const disk = this.#disk
    this.#host.flushing(upTo)
    return this.#write(() => disk.flush(images, upTo), 1)
  }

  stage(rows: readonly PartitionDescriptor[]): Promise<void> {
    const disk = this.#disk
    return this.#write(() => disk.stage(rows), 1)
  }

  unstage(ids: StagedIds): Promise<void> {
    const disk = this.#disk
    return this.#write(() => disk.unstage(ids), 1)
  }

  load = (needs: Needs) => this.#read((disk) => disk.load(needs))
  known = (...args: Parameters<Disk['known']>) => this.#read((disk) => disk.known(...args))
  doneRows = (task: number) => this.#read((disk) => disk.doneRows(task))
  due = (...args: Parameters<Disk['due']>) => this.#read((disk) => disk.due(...args))
  leasedOrDelayed = (limit: number) => this.#read((disk) => disk.leasedOrDelayed(limit))
  heldBy = (...args: Parameters<Disk['heldBy']>) => this.#read((disk) => disk.heldBy(...args))
  dueKeys = (...args: Parameters<Disk['dueKeys']>) => this.#read((disk) => disk.dueKeys(...args))
  purgeable = (...args: Parameters<Disk['purgeable']>) => this.#read((disk) => disk.purgeable(...args))
  tasksWithReruns = (limit: number) => this.#read((disk) => disk.tasksWithReruns(limit))
  tasksWithStagedRows = () => this.#read((disk) => disk.tasksWithStagedRows())
  taskDetail = (taskId: string) => this.#read((disk) => disk.taskDetail(taskId))
  taskPage = (...args: Parameters<Disk['taskPage']>) => this.#read((disk) => disk.taskPage(...args))
  taskSummaries = (ids: readonly number[]) => this.#read((disk) => disk.taskSummaries(ids))
  tasksWithTables = (ids: readonly number[], tables: readonly string[]) =>
    this.#read((disk) => disk.tasksWithTables(ids, tables))
  throughput = (...args: Parameters<Disk['throughput']>) => this.#read((disk) => disk.throughput(...args))
  forgetThroughput = (...args: Parameters<Disk['forgetThroughput']>) =>
    this.#read((disk) => disk.forgetThroughput(...args))
  instance = (...args: Parameters<Disk['instance']>) => this.#read((disk) => disk.instance(...args))
  instances = (...args: Parameters<Disk['instances']>) => this.#read((disk) => disk.instances(...args))
  activeInstances = (...args: Parameters<Disk['activeInstances']>) =>
    this.#read((disk) => disk.activeInstances(...args))
  recordInstances = (...args: Parameters<Disk['recordInstances']>) =>
    this.#read((disk) => disk.recordInstances(...args))
  forgetInstances = (...args: Parameters<Disk['forgetInstances']>) =>
    this.#read((disk) => disk.forgetInstances(...args))
  readonly outbox: OutboxDisk = {
    subscriptions: () => this.#read((disk) => disk.outbox.subscriptions()),
    deliveries: (query) => this.#read((disk) => disk.outbox.deliveries(query)),
    backlogs: (subscriptions) => this.#read((disk) => disk.outbox.backlogs(subscriptions)),
  }
  probe = () => this.#read((disk) => disk.probe())
  recount = () => this.#read((disk) => disk.recount())

  hasSpace(): boolean {
    return true
  }

  close(): Promise<void> {
    return this.#disk.close()
  }

  /** Most reads take no time, so that other events rarely happen during a read. */
  #read<Answer>(read: (disk: MemoryDisk) => Promise<Answer>): Promise<Answer> {
    const { chance, faults } = this.#host
    if (chance.happens(faults.reads)) return this.#later(() => Promise.reject(unavailable('a read failed')))
    return chance.happens(0.9) ? read(this.#disk) : this.#later(() => read(this.#disk))
  }

  #later<Answer>(act: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#answer(this.#host.chance.between(1, SLOWEST_MILLIS), () => act().then(resolve, reject))
    })
  }

  #write<Answer>(
    act: () => Promise<Answer>,
    share: number,
    isUnderWay: () => void = () => undefined,
  ): Promise<Answer> {
    const { chance } = this.#host
    const fate = this.#fate(share)
    const there = chance.below(SLOWEST_MILLIS)
    // Mostly the answer comes at once; otherwise other events may happen between the operation and its
    // answer.
    const back = chance.happens(0.8) ? 0 : chance.between(1, SLOWEST_MILLIS)
    return new Promise((resolve, reject) => {
      const refuse = () => reject(unavailable(`a write ${fate === 'fails' ? 'failed' : 'is in doubt'}`))
      switch (fate) {
        case 'carried out':
          this.#arrive(there, () => {
            isUnderWay()
            const done = act()
            if (back === 0 && !this.#isOut()) done.then(resolve, reject)
            else {
              // The failure is handled when the answer arrives.
              done.catch(() => undefined)
              this.#answer(back, () => done.then(resolve, reject))
            }
          })
          break
        case 'fails':
          this.#answer(there, refuse)
          break
        case 'doubt':
          this.#arrive(there, () => {
            isUnderWay()
            act().catch(() => undefined)
            this.#answer(back, refuse)
          })
          break
        case 'late':
          this.#answer(there, () => {
            isUnderWay()
            this.#arrive(chance.below(LATEST_MILLIS), () => act().catch(() => undefined))
            refuse()
          })
      }
    })
  }

  #fate(share: number): Fate {
    const { chance, faults } = this.#host
    const drawn = chance.below(1_000_000) / 1_000_000
    if (drawn < faults.fails) return 'fails'
    if (drawn < faults.fails + faults.doubt) return 'doubt'
    return drawn < faults.fails + faults.doubt + faults.late * share ? 'late' : 'carried out'
  }

  #isOut(): boolean {
    return this.#host.isDead || this.#host.frozenUntil > this.#host.time.now
  }

  /**
   * An operation reaches the medium. A frozen process may not have sent it yet; a dead one may or may not
   * have sent it.
   */
  #arrive(millis: number, act: () => void): void {
    const { time, chance } = this.#host
    time.after(millis, () => {
      const { frozenUntil, isDead } = this.#host
      if (isDead && chance.happens(0.5)) return
      if (!isDead && frozenUntil > time.now && chance.happens(0.7))
        this.#arrive(frozenUntil - time.now + chance.below(SLOWEST_MILLIS), act)
      else act()
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

import type { Disk } from '../../disk.ts'
import type { MaintenanceOrder, MaintenanceResult } from '../../store.ts'
import { StoreUnavailable } from '../../store.ts'
import type { Runner } from '../runner.ts'
import { concludeTasks, moveBarriers } from '../task-updates.ts'
import { ThroughputRetention } from '../throughput.ts'
import { advanceRerun } from './control.ts'
import { forgetKeys, purge, taskWithId } from './retention.ts'
import type { Subscriptions } from './subscriptions.ts'

const KEYS_PER_STEP = 500
const INSTANCES_PER_STEP = 500
const TASKS_LOOKED_AT = 100

/** Runs work in its turn, after all rows are flushed. */
type Flushed = <Result>(work: () => Promise<Result>) => Promise<Result>

interface Step {
  readonly more: boolean
  readonly readied: number
}

const NOTHING: Step = { more: false, readied: 0 }

/** Background work, done in small steps so that no pull waits for it. */
export class BackgroundWork {
  readonly #disk: Disk
  readonly #runner: Runner
  readonly #flushed: Flushed
  readonly #outbox: Subscriptions
  readonly #throughput: ThroughputRetention
  /**
   * The id of the last task that was served. Tasks take turns, so that a small rerun does not wait for a
   * large one.
   */
  #lastRerun = 0

  constructor(disk: Disk, runner: Runner, flushed: Flushed, outbox: Subscriptions) {
    this.#disk = disk
    this.#runner = runner
    this.#flushed = flushed
    this.#outbox = outbox
    this.#throughput = new ThroughputRetention(disk)
  }

  /** Runs one step of each duty. A duty that fails does not prevent the others. */
  async run(order: MaintenanceOrder): Promise<MaintenanceResult> {
    let result: MaintenanceResult = { more: false, readied: 0 }
    const duties = [
      () => this.#rerun(),
      () => this.#forgetKeys(),
      () => this.#forgetInstances(order),
      () => this.#purge(order),
      () => this.#maintainOutbox(order),
      () => this.#forgetThroughput(order),
    ]
    for (const duty of duties) {
      try {
        const { more, readied } = await this.#flushed(duty)
        result = { ...result, more: result.more || more, readied: result.readied + readied }
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error
        result = { ...result, failure: result.failure ?? error }
      }
    }
    return result
  }

  async #rerun(): Promise<Step> {
    const tasks = (await this.#disk.unfinishedWork(TASKS_LOOKED_AT)).filter(({ reruns }) => reruns.length > 0)
    const next = tasks.find(({ id }) => id > this.#lastRerun) ?? tasks[0]
    if (next === undefined) return NOTHING
    this.#lastRerun = next.id
    return this.#runner.transact(function* (tx) {
      const task = yield* taskWithId(tx, next.id)
      if (task !== undefined) yield* advanceRerun(tx, task, 0)
      yield* moveBarriers(tx)
      yield* concludeTasks(tx)
      return { more: true, readied: tx.readied.count }
    })
  }

  async #forgetKeys(): Promise<Step> {
    const due = await this.#disk.dueKeys(this.#runner.now, KEYS_PER_STEP)
    if (due.length === 0) return NOTHING
    const seen = await this.#runner.transact((tx) => forgetKeys(tx, due))
    return { more: seen < due.length || due.length === KEYS_PER_STEP, readied: 0 }
  }

  async #forgetInstances({ forgetInstancesMillis, forgetEndedNodesMillis }: MaintenanceOrder): Promise<Step> {
    const { now } = this.#runner
    const forgotten = await this.#disk.forgetInstances(
      now - forgetInstancesMillis,
      now - forgetEndedNodesMillis,
      INSTANCES_PER_STEP,
    )
    // Their next pull or call-back stores them again.
    if (forgotten > 0) (await this.#runner.open()).instances.clear()
    return { more: forgotten === INSTANCES_PER_STEP, readied: 0 }
  }

  async #maintainOutbox({ retentionMillis }: MaintenanceOrder): Promise<Step> {
    return { more: await this.#outbox.maintain(this.#runner.now - retentionMillis), readied: 0 }
  }

  /** Hourly rows are kept for the retention time, so a purged task has no history left. */
  async #forgetThroughput({ retentionMillis }: MaintenanceOrder): Promise<Step> {
    return { more: await this.#throughput.maintain(this.#runner.now, retentionMillis), readied: 0 }
  }

  async #purge({ retentionMillis }: MaintenanceOrder): Promise<Step> {
    const next = await this.#disk.purgeable(this.#runner.now - retentionMillis)
    if (next === null) return NOTHING
    await this.#runner.transact(function* (tx) {
      const task = yield* taskWithId(tx, next.id)
      if (task !== undefined) yield* purge(tx, task)
    })
    return { more: true, readied: 0 }
  }
}

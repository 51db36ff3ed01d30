import { storeClosed } from '../store.ts'
import type { Runner } from './runner.ts'
import type { Memory } from './state/memory.ts'
import type { Transaction } from './transaction.ts'

type Work<Result> = () => Promise<Result>

/** Runs work on open memory, one piece after the other, in call order. */
export class Exclusive {
  readonly #runner: Runner
  readonly #opened: () => Promise<void>
  /** The work that was added last. New work starts after it has succeeded or failed. */
  #last: Promise<unknown> = Promise.resolve()
  #openedIn = -1
  isClosed = false

  /** `opened` is called before the first work on memory that was read from the disk. */
  constructor(runner: Runner, opened: () => Promise<void>) {
    this.#runner = runner
    this.#opened = opened
  }

  run<Result>(work: Work<Result>): Promise<Result> {
    return this.isClosed ? Promise.reject(storeClosed()) : this.complete(work)
  }

  /** Runs one transaction. */
  transact<Result>(
    work: (tx: Transaction) => Promise<Result>,
    needsEntry?: (result: Result) => boolean,
  ): Promise<Result> {
    return this.run(() => this.#runner.transact(work, needsEntry))
  }

  /** For the rest of something that has started: it also runs while the store is being closed. */
  complete<Result>(work: Work<Result>): Promise<Result> {
    const before = this.#last
    const result = (async () => {
      await before.catch(() => undefined)
      await this.#open()
      return work()
    })()
    this.#last = result
    return result
  }

  runFlushed<Result>(work: Work<Result>): Promise<Result> {
    return this.runFlushedAhead(async () => {
      await this.#runner.flush()
      return work()
    })
  }

  /** For work that flushes rows: most are written before it starts, so that others are not blocked. */
  runFlushedAhead<Result>(work: Work<Result>): Promise<Result> {
    if (!this.#runner.isFarBehind) return this.run(work)
    return this.#runner.flushAhead().then(() => this.run(work))
  }

  /** Flushes rows first. Reading them is not exclusive, so a slow view does not block other work. */
  async view<Result>(read: (now: number, memory: Memory) => Promise<Result>): Promise<Result> {
    const memory = await this.runFlushed(() => this.#runner.open())
    const result = await read(this.#runner.now, memory)
    await this.#runner.yieldToEventLoop()
    return result
  }

  /** For views of what rows do not have. */
  viewMemory<Result>(read: (now: number, memory: Memory) => Result | Promise<Result>): Promise<Result> {
    return this.run(async () => read(this.#runner.now, await this.#runner.open()))
  }

  /** If memory was dropped, it is read from the disk first. */
  async #open(): Promise<void> {
    await this.#runner.open()
    const { epoch } = this.#runner
    if (this.#openedIn === epoch) return
    await this.#opened()
    this.#openedIn = epoch
  }

  async end(): Promise<void> {
    await this.#last.catch(() => undefined)
  }
}

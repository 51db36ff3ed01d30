import { resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Clock, systemClock } from '../../handoff/clock.ts'
import type { Policy } from '../../handoff/policy.ts'
import {
  type Batching,
  type HandOffBatch,
  type Store,
  StoreRefused,
  StoreUnavailable,
} from '../../handoff/store.ts'
import type { Verbs } from './session.ts'
import { isLarge, sendAhead } from './staging.ts'
import type { Call, Reply, ThreadData } from './thread.ts'

export interface SqliteStoreOptions {
  readonly folder: string
  readonly policy: Policy
  readonly clock?: Clock
}

/**
 * One transaction after the other. With one batch ahead the thread does not wait for an event loop that is busy: 7 and
 * 18 % more pulls and settles than without (16 and 64 clients, one noisy run each).
 */
const BATCHING: Batching = { atOnce: 1, full: Number.POSITIVE_INFINITY, fullAtOnce: 1, ahead: 4 }

/** Resolves when the data folder is locked, migrated and ready; rejects with StoreRefused when it must not be used. */
export async function openSqliteStore({
  folder,
  policy,
  clock = systemClock,
}: SqliteStoreOptions): Promise<Store> {
  const thread = new StoreThread({ folder: resolve(folder), policy }, clock)
  await thread.open()
  const verb =
    <Verb extends keyof Verbs>(name: Verb) =>
    (argument?: unknown) =>
      thread.call(name, argument)
  return {
    // Without a turn in between where nothing is large: what is asked first comes first, a close too.
    handOff: (batch: HandOffBatch) =>
      isLarge(batch)
        ? sendAhead(batch, (piece) => thread.call('stage', piece)).then((rest) =>
            thread.call('handOff', rest),
          )
        : thread.call('handOff', batch),
    sweep: verb('sweep'),
    tidy: verb('tidy'),
    control: verb('control'),
    task: verb('task'),
    tasks: verb('tasks'),
    partitions: verb('partitions'),
    changes: verb('changes'),
    recordSightings: verb('recordSightings'),
    instance: verb('instance'),
    instances: verb('instances'),
    probe: verb('probe'),
    audit: verb('audit'),
    close: () => thread.close(),
    batching: BATCHING,
  } as Store
}

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** The way to the thread and back: calls are answered in the order in which they were made. */
class StoreThread {
  readonly #worker: Worker
  readonly #clock: Clock
  readonly #waiting = new Map<number, Waiting>()
  readonly #opened: Promise<unknown>
  #lastId = 0
  #ended: Error | undefined

  constructor(data: ThreadData, clock: Clock) {
    this.#clock = clock
    // The file's own ending: .ts where the source runs, .js where it was compiled.
    const entry = new URL(
      `./thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`,
      import.meta.url,
    )
    this.#worker = new Worker(entry, { workerData: data, name: 'baton-store' })
    this.#opened = this.#answerTo(0)
    this.#worker.on('message', (reply: Reply) => this.#receive(reply))
    this.#worker.on('error', (error) => this.#end(error))
    this.#worker.on('exit', () => this.#end(new Error('the store thread has ended')))
  }

  /** A thread that has nothing to serve must end, or it keeps the process alive and the folder locked. */
  async open(): Promise<void> {
    try {
      await this.#opened
    } catch (error) {
      await this.#worker.terminate()
      throw error
    }
  }

  call(verb: Call['verb'], argument: unknown): Promise<unknown> {
    if (this.#ended !== undefined) {
      return Promise.reject(
        new StoreUnavailable('store_unavailable', 'the store is closed', { cause: this.#ended }),
      )
    }
    this.#lastId += 1
    const answer = this.#answerTo(this.#lastId)
    const call = { id: this.#lastId, verb, argument: JSON.stringify(argument ?? null), now: this.#clock() }
    this.#worker.postMessage(call satisfies Call)
    return answer
  }

  async close(): Promise<void> {
    if (this.#ended !== undefined) return
    await this.call('close', undefined)
    await this.#worker.terminate()
  }

  #answerTo(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  #receive(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id)
    if (waiting === undefined) return
    this.#waiting.delete(reply.id)
    if ('result' in reply) waiting.resolve(JSON.parse(reply.result))
    else waiting.reject(errorOf(reply))
  }

  #end(error: Error): void {
    this.#ended ??= error
    for (const { reject } of this.#waiting.values()) {
      reject(
        new StoreUnavailable('store_unavailable', 'the store thread ended unexpectedly', { cause: error }),
      )
    }
    this.#waiting.clear()
  }
}

function errorOf(reply: Exclude<Reply, { result: unknown }>): Error {
  if ('refused' in reply) return new StoreRefused(reply.refused)
  if ('unavailable' in reply) return new StoreUnavailable(reply.unavailable.code, reply.unavailable.detail)
  const error = new Error(reply.failure.text)
  error.stack = reply.failure.stack
  return error
}

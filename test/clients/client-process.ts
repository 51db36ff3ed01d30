import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type {
  BatonClient,
  BatonClientOptions,
  PartitionDescriptor,
  ProducerOptions,
  StopOptions,
  Subscriptions,
  WorkerOptions,
  WorkProgress,
} from '@baton/client'
import { onTestFinished } from 'vitest'
import { pythonProgram } from '../support/python.ts'

/**
 * The programs in `drivers` use one client library each, as this file asks them to: a line of JSON on their
 * standard input is a command, a line on their standard output an answer or an event. Options have the names
 * of the TypeScript client.
 */
export type Command = CallCommand | ProduceCommand | WorkCommand | FollowCommand | OpenCommand | StopCommand

/** The part of the options that can be written as JSON. */
export type ServiceOptions = Pick<
  BatonClientOptions & { url: string | string[]; token?: string },
  'url' | 'token' | 'instanceId' | 'tableField' | 'timeoutSeconds' | 'retryForSeconds'
>

export type Method = keyof BatonClient | `subscriptions.${keyof Subscriptions}`

/** Calls one method of the client. Options come last. */
export interface CallCommand {
  readonly op: 'call'
  readonly service: ServiceOptions
  readonly method: Method
  readonly given: readonly unknown[]
}

/** Calls partitions back. */
export interface ProduceCommand {
  readonly op: 'produce'
  readonly service: ServiceOptions
  readonly descriptors: readonly PartitionDescriptor[]
  /** As an iterable of unknown length. */
  readonly stream?: boolean
  /** The iterable waits before this position until the gate `producer` is opened. */
  readonly pauseAt?: number
  readonly options?: ProducerOptions
  readonly seal?: boolean | number
}

/** What a handler does with a partition. */
export interface Action {
  /** Waits until the gate with the name of the partition is opened. */
  readonly gate?: 'raises at abort' | 'returns at abort' | 'ignores abort'
  readonly outcome?: 'error' | 'failed' | 'released'
  readonly reason?: string
  readonly final?: boolean
  readonly retryAfterSeconds?: number
  readonly records?: number
  /** Reported after the gate. */
  readonly progress?: WorkProgress
  /** Saved then. The handler waits until it is stored, unless `awaits` is false. */
  readonly checkpoint?: string | null
  readonly awaits?: false
  /** Waits then until its gate is opened. */
  readonly holds?: true
}

/** Starts a worker. */
export interface WorkCommand {
  readonly op: 'work'
  /** The name of the worker. */
  readonly on: string
  readonly service: ServiceOptions
  /** By name of the partition; `*` is for all others. */
  readonly actions?: Readonly<Record<string, Action>>
  readonly options?: Omit<WorkerOptions, 'signal' | 'onEvent' | 'around'>
  /** SIGTERM stops the worker. */
  readonly untilSignal?: boolean
}

/** Follows the events of the service until one of this task arrives. Each is an event of `follower`. */
interface FollowCommand {
  readonly op: 'follow'
  readonly service: ServiceOptions
  readonly task: string
}

interface OpenCommand {
  readonly op: 'open'
  /** All gates, if absent. */
  readonly names?: readonly string[]
}

interface StopCommand {
  readonly op: 'stop' | 'stopped'
  readonly on: string
  readonly options?: StopOptions
}

export interface ClientEvent {
  readonly kind: string
  readonly partition?: string
  readonly partitions?: readonly string[]
  readonly outcome?: string
  readonly parked?: boolean
  readonly reason?: string
  readonly code?: string
  readonly path?: string
  readonly leases?: number
  readonly abandoned?: number
  /** Of a `resumed` event of the driver: what came with the lease. */
  readonly checkpoint?: string
  readonly error?: { readonly name: string; readonly code?: string }
}

/** An error of the client library, with the fields that both libraries have. */
export class ClientFailure extends Error {
  readonly failure: Readonly<Record<string, unknown>>

  constructor(failure: Readonly<Record<string, unknown>>) {
    super(`${failure['name']}: ${failure['message']}`)
    this.failure = failure
  }
}

/** Without other fields, which the service of a test may have. */
function sent({ url, token, instanceId, tableField, timeoutSeconds, retryForSeconds }: ServiceOptions) {
  return { url, token, instanceId, tableField, timeoutSeconds, retryForSeconds } as ServiceOptions
}

export type Language = 'typescript' | 'python'

async function programOf(language: Language): Promise<readonly [string, ...string[]]> {
  const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
  return language === 'python'
    ? [await pythonProgram(), pathOf('drivers/python.py')]
    : [process.execPath, '--conditions=baton-source', pathOf('drivers/typescript.ts')]
}

/** A program that uses a client library. */
export class ClientProcess {
  readonly #language: Language
  readonly #child: ChildProcess
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #events = new Map<string, ClientEvent[]>()
  #count = 0

  private constructor(language: Language, child: ChildProcess) {
    this.#language = language
    this.#child = child
    if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => this.#read(line))
    child.once('exit', (code, signal) => {
      const error = new Error(`the client's program ended: ${signal ?? code}`)
      for (const { reject } of this.#answers.values()) reject(error)
    })
  }

  static async start(language: Language, environment: Record<string, string> = {}): Promise<ClientProcess> {
    const [program, ...args] = await programOf(language)
    const sources = fileURLToPath(new URL('../../clients/python/src', import.meta.url))
    const child = spawn(program, args, {
      env: { ...process.env, PYTHONPATH: sources, PYTHONDONTWRITEBYTECODE: '1', ...environment },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    return new ClientProcess(language, child)
  }

  /** For a test that stops or kills it, or that needs an environment. */
  async another(environment: Record<string, string> = {}): Promise<ClientProcess> {
    const other = await ClientProcess.start(this.#language, environment)
    onTestFinished(() => other.signal('SIGKILL'))
    return other
  }

  call(service: ServiceOptions, method: Method, ...given: unknown[]): Promise<unknown> {
    return this.#ask({ op: 'call', service: sent(service), method, given })
  }

  produce(command: Omit<ProduceCommand, 'op'>): Promise<unknown> {
    this.#events.delete('producer')
    return this.#ask({ op: 'produce', ...command, service: sent(command.service) })
  }

  async follow(service: ServiceOptions, task: string): Promise<void> {
    await this.#ask({ op: 'follow', service: sent(service), task })
  }

  async work(command: Omit<WorkCommand, 'op' | 'on'>): Promise<WorkerOfClient> {
    const on = `worker-${this.#count}`
    await this.#ask({ op: 'work', on, ...command, service: sent(command.service) })
    return new WorkerOfClient(
      () => this.eventsOf(on),
      (op, options) => this.#ask({ op, on, ...(options === undefined ? {} : { options }) }),
    )
  }

  async open(...names: string[]): Promise<void> {
    await this.#ask({ op: 'open', ...(names.length === 0 ? {} : { names }) })
  }

  eventsOf(on: string): readonly ClientEvent[] {
    return this.#events.get(on) ?? []
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  #ask(command: Command): Promise<unknown> {
    this.#count += 1
    const asked = Promise.withResolvers<unknown>()
    this.#answers.set(this.#count, asked)
    this.#child.stdin?.write(`${JSON.stringify({ id: this.#count, ...command })}\n`)
    return asked.promise
  }

  #read(line: string): void {
    const { id, answer, error, on, event } = JSON.parse(line)
    if (event !== undefined) {
      const events = this.#events.get(on) ?? []
      this.#events.set(on, events)
      events.push(event)
      return
    }
    const asked = this.#answers.get(id)
    this.#answers.delete(id)
    if (error === undefined) asked?.resolve(answer)
    else asked?.reject(new ClientFailure(error))
  }
}

/** A worker in the program of a client. */
class WorkerOfClient {
  readonly #events: () => readonly ClientEvent[]
  readonly #ask: (op: 'stop' | 'stopped', options?: StopOptions) => Promise<unknown>

  constructor(
    events: () => readonly ClientEvent[],
    ask: (op: 'stop' | 'stopped', options?: StopOptions) => Promise<unknown>,
  ) {
    this.#events = events
    this.#ask = ask
  }

  get events(): readonly ClientEvent[] {
    return this.#events()
  }

  of(kind: string): readonly ClientEvent[] {
    return this.events.filter((event) => event.kind === kind)
  }

  /** The partitions of the events of a kind. */
  names(kind: string): string[] {
    return this.of(kind).map(({ partition = '' }) => partition)
  }

  /** The paths of its requests. */
  get paths(): string[] {
    return this.of('request').map(({ path = '' }) => path)
  }

  async stop(options?: StopOptions): Promise<void> {
    await this.#ask('stop', options)
  }

  /** Resolves when the worker has stopped; rejects if it stopped because of an error. */
  async stopped(): Promise<void> {
    await this.#ask('stopped')
  }
}

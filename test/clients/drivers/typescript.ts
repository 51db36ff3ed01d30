/** Runs the TypeScript client for the cases of `test/clients`, by the protocol of `client-process.ts`. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import {
  BatonClient,
  type BatonClientOptions,
  type BatonError,
  Failed,
  type HandlingContext,
  type HandlingOutcome,
  type PartitionDescriptor,
  Producer,
  Released,
  Worker,
  type WorkerEvent,
} from '@baton/client'
import type { Action, Command, ProduceCommand, WorkCommand } from '../client-process.ts'

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)

const clientFor = (options: BatonClientOptions, on?: string) =>
  new BatonClient({
    ...options,
    onRequest: ({ path, status }) => say({ on, event: { kind: 'request', path, status } }),
  })

/** Calls with the same options use the same client. */
const clients = new Map<string, BatonClient>()
const workers = new Map<string, Worker>()
const gates = new Map<string, () => void>()

const gate = (name: string) => new Promise<void>((resolve) => gates.set(name, resolve))

function open(names: readonly string[] | undefined): void {
  for (const name of names ?? [...gates.keys()]) {
    gates.get(name)?.()
    gates.delete(name)
  }
}

async function handle(action: Action, name: string, context: HandlingContext): Promise<HandlingOutcome> {
  const { signal } = context
  if (action.gate !== undefined) {
    const aborted = new Promise<void>((resolve) => {
      if (action.gate !== 'ignores abort') signal.addEventListener('abort', () => resolve())
    })
    await Promise.race([gate(name), aborted])
    if (action.gate === 'raises at abort') signal.throwIfAborted()
  }
  if (action.progress !== undefined) context.progress(action.progress)
  if (action.checkpoint !== undefined) {
    const saved = context.saveCheckpoint(action.checkpoint)
    if (action.awaits !== false) await saved
  }
  if (action.holds) await gate(name)
  const { reason = '', final = false, retryAfterSeconds } = action
  const timing = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  if (action.outcome === 'error') throw new Error(reason, { cause: new Error('the cause') })
  if (action.outcome === 'failed') throw new Failed(reason, { final, ...timing })
  if (action.outcome === 'released') throw new Released(reason, timing)
  return action.records === undefined ? {} : { records: action.records }
}

function work({ on, service, actions = {}, options = {}, untilSignal }: WorkCommand): void {
  const worker = new Worker(
    clientFor(service, on),
    (partition, context) => {
      const { partition_name } = partition
      const { checkpoint } = context
      if (checkpoint !== null) say({ on, event: { kind: 'resumed', partition: partition_name, checkpoint } })
      const action = actions[partition.partition_name] ?? actions['*'] ?? {}
      return handle(action, partition.partition_name, context)
    },
    { ...options, onEvent: (event) => say({ on, event: plain(event) }) },
  )
  workers.set(on, worker)
  if (untilSignal) process.once('SIGTERM', () => void worker.stop())
  worker.start()
}

function plain(event: WorkerEvent): object {
  return {
    ...event,
    ...('partition' in event ? { partition: event.partition.partition_name } : {}),
    ...('partitions' in event ? { partitions: event.partitions.map((one) => one.partition_name) } : {}),
    ...('error' in event && event.error !== undefined ? { error: described(event.error) } : {}),
  }
}

function described(error: unknown): object {
  const { name, message, stored, ...others } = error as BatonError & { code?: string; status?: number }
  const { violations, conflicts } = error as { violations?: unknown; conflicts?: unknown }
  return { name, message, stored, ...others, violations, conflicts }
}

async function produce({ service, descriptors, stream, pauseAt, options = {}, seal }: ProduceCommand) {
  async function* coming(): AsyncGenerator<PartitionDescriptor> {
    for (const [at, descriptor] of descriptors.entries()) {
      if (at === pauseAt) {
        say({ on: 'producer', event: { kind: 'paused' } })
        await gate('producer')
      }
      yield descriptor
    }
  }
  const progress: number[] = []
  const onProgress = ({ sent }: { sent: number }) => progress.push(sent)
  const onFailure = ({ error }: { error: BatonError }) =>
    say({ on: 'producer', event: { kind: 'away', error: described(error) } })
  const producer = new Producer(clientFor({ ...service, onFailure }, 'producer'), options)
  const receipt = await producer.callBack(stream ? coming() : descriptors, { seal, onProgress })
  return { ...receipt, progress }
}

async function follow(service: BatonClientOptions, task: string): Promise<void> {
  for await (const { name, data } of clientFor(service).events()) {
    say({ on: 'follower', event: { kind: name } })
    if (name === 'task' && data.taskId === task) return
  }
}

type Operations = Record<string, (...given: readonly unknown[]) => Promise<unknown>>

async function perform(command: Command): Promise<unknown> {
  switch (command.op) {
    case 'call': {
      const key = JSON.stringify(command.service)
      const client = clients.get(key) ?? clientFor(command.service)
      clients.set(key, client)
      const [group, name] = command.method.split('.')
      const on = (name === undefined ? client : client.subscriptions) as unknown as Operations
      return on[name ?? group ?? '']?.(...command.given)
    }
    case 'produce':
      return produce(command)
    case 'work':
      return work(command)
    case 'follow':
      return follow(command.service, command.task)
    case 'open':
      return open(command.names)
    case 'stop':
      return workers.get(command.on)?.stop(command.options)
    case 'stopped':
      return workers.get(command.on)?.stopped
  }
}

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const { id, ...command } = JSON.parse(line) as Command & { id: number }
  perform(command as Command).then(
    (answer) => say({ id, answer: answer ?? null }),
    (error: unknown) => say({ id, error: described(error) }),
  )
})
await once(lines, 'close')

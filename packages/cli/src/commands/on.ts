import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rename } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type BatonClient,
  BatonError,
  type CloudEvent,
  ProblemError,
  type WebhookEventType,
} from '@baton/client'
import { webhookEventTypes } from '@baton/protocol/core'
import { type Arguments, type Command, LONGEST_TIMER_SECONDS } from '../command-line.ts'
import { connect, placeFlags, urlOf } from '../connection.ts'
import { exitCodes, interruptible, Refusal, UsageError } from '../errors.ts'
import { remark, shown } from '../terminal.ts'

/** Runs the command to its end, with the event on its stdin. Returns why it failed, or undefined. */
async function runForEvent(
  [command = '', ...args]: readonly string[],
  event: CloudEvent,
  url: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const child = spawn(command, args, {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: {
      ...process.env,
      BATON_URL: url,
      BATON_EVENT_TYPE: event.type,
      BATON_EVENT_ID: event.id,
      BATON_TASK_ID: event.subject,
    },
  })
  // Before anything else: an error without a listener would end this process.
  const closed = once(child, 'close')
  // A SIGTERM to this process alone also ends the command.
  const end = () => child.kill('SIGTERM')
  signal.addEventListener('abort', end)
  // The command may exit without reading its stdin.
  // If there is no file descriptor for it, the child has no stdin.
  child.stdin?.on('error', () => {})
  child.stdin?.end(`${JSON.stringify(event)}\n`)
  try {
    const [code, killed] = (await closed) as [number | null, NodeJS.Signals | null]
    if (code === 0) return undefined
    return killed === null ? `exit code ${code}` : `stopped by ${killed}`
  } catch (error) {
    return (error as Error).message
  } finally {
    signal.removeEventListener('abort', end)
  }
}

const PAGE = 100

export const on: Command = {
  operands: 'EVENT… -- COMMAND [ARGUMENTS]',
  operandCount: [1, webhookEventTypes.length],
  takesCommand: true,
  operandsBeforeCommand: true,
  details: `Runs a command once per event, one at a time: ${webhookEventTypes.join(', ')}. The command
receives the event on stdin, as a line of JSON in the format of CloudEvents, and in its environment: BATON_EVENT_TYPE,
BATON_EVENT_ID, BATON_TASK_ID.

The first start creates a subscription. From then on the service stores the events, also while this program does not
run. The file given by --state stores the position. An event is processed when its command exits with 0. If a command
fails, this program exits, and the next start begins with the same event; with --keep-going it continues with the next
one. After a crash an event may be repeated, with the same BATON_EVENT_ID.`,
  flags: {
    state: {
      kind: 'text',
      placeholder: 'FILE',
      default: 'baton-on.json',
      description: 'file that stores the position in the events; each use of this command requires its own',
    },
    'task-prefix': {
      kind: 'text',
      placeholder: 'TEXT',
      description: 'only tasks whose id begins with this prefix',
    },
    once: { kind: 'switch', description: 'exit when there are no more events, for cron' },
    'keep-going': { kind: 'switch', description: 'continue with the next event if a command fails' },
    interval: {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      minimum: 0.1,
      maximum: LONGEST_TIMER_SECONDS,
      default: 2,
      description: 'how often to check for new events',
    },
    ...placeFlags,
    json: { kind: 'switch', description: 'log events as lines of JSON, on stderr' },
  },
  examples: [
    { line: 'baton on task.done --task-prefix orders- -- ./publish.sh', says: 'The next step of a pipeline' },
    {
      line: `baton on task.stalled partition.parked -- sh -c 'mail -s "$BATON_TASK_ID" ops'`,
      says: 'Send an alert',
    },
  ],
  run: (given) => interruptible((signal) => run(given, signal)),
}

async function run(given: Arguments, signal: AbortSignal): Promise<number> {
  if (given.command.length === 0)
    throw new UsageError('on requires a command: baton on EVENT… -- COMMAND [ARGUMENTS]')
  const types = typesOf(given)
  const taskPrefix = given.text('task-prefix') ?? ''
  const client = connect(given, { retryForSeconds: 0 })
  const position = await EventPosition.open(given.textOrDefault('state'), {
    url: urlOf(given),
    types,
    taskPrefix,
  })
  let failures = 0
  let isAway = false
  /** The position whose missing events were reported. Every page up to the next event has the same gap. */
  let missedAfter: string | undefined
  while (true) {
    try {
      const subscription = await subscribed(client, position, { types, taskPrefix, signal })
      const { after } = position
      const page = await client.subscriptions.events(subscription, { after, limit: PAGE, signal })
      isAway = false
      if (page.missed && after !== missedAfter) {
        missedAfter = after
        remark(
          given,
          'retention deleted events before they were read; continuing with the oldest stored event',
        )
      }
      for (const event of page.events) {
        const isDone = await handle(given, event, signal)
        if (!isDone && !given.switch('keep-going')) return exitCodes.refused
        if (!isDone) failures += 1
        await position.move(event.sequence)
        signal.throwIfAborted()
      }
      if (page.events.length > 0) continue
      if (given.switch('once')) return failures > 0 ? exitCodes.refused : exitCodes.ok
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (isGone(error)) throw new UsageError(goneText(given))
      if (!(error instanceof BatonError) || !error.retryable) throw error
      if (!isAway) remark(given, `${error.message}; retrying until the service is available`)
      isAway = true
    }
    await pause(given.numberOrDefault('interval') * 1000, undefined, { signal }).catch(() => {
      throw signal.reason
    })
  }
}

function typesOf(given: Arguments): WebhookEventType[] {
  const isType = (text: string): text is WebhookEventType =>
    (webhookEventTypes as readonly string[]).includes(text)
  const wrong = given.operands.find((text) => !isType(text))
  if (wrong !== undefined)
    throw new UsageError(
      `${JSON.stringify(wrong)} is not an event; the events are ${webhookEventTypes.join(', ')}`,
    )
  return [...new Set(given.operands.filter(isType))].sort()
}

interface SubscriptionRequest {
  readonly types: WebhookEventType[]
  readonly taskPrefix: string
  readonly signal: AbortSignal
}

/** The subscription of this state file. Created at the first start. */
async function subscribed(
  client: BatonClient,
  position: EventPosition,
  request: SubscriptionRequest,
): Promise<string> {
  if (position.subscription !== null) return position.subscription
  const id = await created(client, position, request)
  try {
    await position.begin(id)
  } catch (error) {
    // Without the state file, this subscription would never be read.
    await client.subscriptions.remove(id).catch(() => undefined)
    throw error
  }
  return id
}

/**
 * Creates the subscription. If the answer of an earlier try was lost, another try would create a second one,
 * so the one that has appeared since the start is taken.
 */
async function created(
  client: BatonClient,
  position: EventPosition,
  { signal, ...request }: SubscriptionRequest,
): Promise<string> {
  const listed = await client.subscriptions.list({ signal })
  position.othersAtStart ??= new Set(listed.map(({ id }) => id))
  const { types, taskPrefix } = request
  const lost = listed.find(
    (found) =>
      !position.othersAtStart?.has(found.id) &&
      found.url === null &&
      found.taskPrefix === taskPrefix &&
      String(found.types.toSorted()) === String(types),
  )
  return lost?.id ?? (await client.subscriptions.create(request, { signal })).id
}

async function handle(given: Arguments, event: CloudEvent, signal: AbortSignal): Promise<boolean> {
  const failure = await runForEvent(given.command, event, urlOf(given), signal)
  // Also if this program is ending: the command has finished, so the event must not be repeated.
  if (failure === undefined) return true
  if (signal.aborted) throw signal.reason
  remark(given, `the command for ${event.type} of ${shown(event.subject)} failed: ${failure}`)
  return false
}

const isGone = (error: unknown): boolean =>
  error instanceof ProblemError && error.code === 'subscription_unknown'

const goneText = (given: Arguments): string =>
  `the service no longer has the subscription of ${given.textOrDefault('state')}; remove that file to create a new subscription`

/** The subscription that a state file belongs to. */
interface Following {
  readonly url: string
  readonly types: readonly string[]
  readonly taskPrefix: string
}

interface State extends Following {
  readonly subscription: string
  /** The last event that was handled. */
  readonly after?: string
}

/**
 * The position of `baton on` in its events, kept in a file. The file is flushed and replaced atomically
 * before the next event is handled.
 */
class EventPosition {
  readonly #path: string
  readonly #following: Following
  #state: State | null
  /** The ids of all subscriptions before this program created its own. */
  othersAtStart: ReadonlySet<string> | undefined

  private constructor(path: string, following: Following, state: State | null) {
    this.#path = path
    this.#following = following
    this.#state = state
  }

  static async open(path: string, following: Following): Promise<EventPosition> {
    const state = await read(path)
    if (state !== null) {
      const made = JSON.stringify([state.types, state.taskPrefix])
      if (made !== JSON.stringify([following.types, following.taskPrefix]))
        throw new UsageError(
          `${path} belongs to ${state.types.join(' ')}${state.taskPrefix === '' ? '' : ` of tasks that begin with ${state.taskPrefix}`}; name another file with --state`,
        )
    }
    return new EventPosition(path, following, state)
  }

  get subscription(): string | null {
    return this.#state?.subscription ?? null
  }

  get after(): string | undefined {
    return this.#state?.after
  }

  async begin(subscription: string): Promise<void> {
    await this.#write({ ...this.#following, subscription })
  }

  async move(after: string): Promise<void> {
    if (this.#state === null) throw new Error('the subscription does not exist yet')
    await this.#write({ ...this.#state, after })
  }

  async #write(state: State): Promise<void> {
    try {
      await replaceFile(this.#path, `${JSON.stringify(state, null, 2)}\n`)
    } catch (error) {
      throw new Refusal(`${this.#path} cannot be written (${(error as NodeJS.ErrnoException).code})`)
    }
    this.#state = state
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const replacement = `${path}.new`
  const file = await open(replacement, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(replacement, path)
}

async function read(path: string): Promise<State | null> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`)
  }
  try {
    const state = JSON.parse(text) as State
    if (typeof state.subscription === 'string' && Array.isArray(state.types)) return state
  } catch {
    // Reported below.
  }
  throw new UsageError(`${path} is not a state file of baton on; name another one with --state`)
}

import { BATCHING } from '../handoff/engine/shared-batches.ts'
import type { Heartbeat } from '../handoff/heartbeats.ts'
import type {
  DeliveryAnswer,
  DeliveryRequest,
  SubscriptionRequest,
  SubscriptionResult,
} from '../handoff/outbox.ts'
import type { ControlRequest, ControlResult } from '../handoff/rules/control.ts'
import {
  type Batching,
  type HandOffAnswers,
  type HandOffBatch,
  type HintListener,
  type MaintenanceRequest,
  type MaintenanceResult,
  type ReleaseRequest,
  type ReleaseResult,
  type Store,
  StoreUnavailable,
  type SweepRequest,
  type SweepResult,
} from '../handoff/store.ts'
import type {
  ActiveInstancesQuery,
  ChangePage,
  ChangeQuery,
  InstanceDetails,
  InstancePage,
  InstanceQuery,
  PartitionPage,
  PartitionQuery,
  TaskDetails,
  TaskPage,
  TaskQuery,
  ThroughputHistory,
  ThroughputQuery,
} from '../handoff/views/queries.ts'
import type { HintStreams } from './hint-streams.ts'
import type { LeaderLink } from './leader-link.ts'
import type { Leadership, Led } from './leadership.ts'
import { bodyOf, type CarriedVerb, hasLargeCallBack, largeBodyOf, NotTaken } from './peer-protocol.ts'
import type { Carried } from './peer-server.ts'

/**
 * How a follower sends batches to the leader. Each batch costs the leader an entry and an HTTP exchange, so
 * only one small batch is sent at a time, and it waits briefly for the next requests of clients that were
 * just answered. Full batches are worth their cost. See bench/scenarios/postgres-nodes.ts.
 */
const CARRIED: Batching = { atOnce: 1, full: 200, fullAtOnce: 2, waitShare: 0.5 }
/**
 * The leader's own batches wait, too: an append is a round trip to the database, whatever the size of its
 * entry.
 */
const LED: Batching = { ...BATCHING, waitShare: 0.5 }
/** How often a request is tried when leaders refuse it one after another. */
const MOST_TRIES = 20

const NOTHING_SWEPT: SweepResult = { woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis: null }

/**
 * The store of one node in a cluster. It uses this node's engine while it leads, and otherwise the leader's,
 * over HTTP. A request that was sent but not answered is never sent again; the client has to find out whether
 * it was carried out.
 */
export class ClusterStore implements Store, Carried {
  readonly #leadership: Leadership
  readonly #streams: HintStreams
  readonly #close: () => Promise<void>
  #hint: HintListener = () => undefined
  readonly batching: Batching

  constructor(leadership: Leadership, streams: HintStreams, close: () => Promise<void>) {
    this.#leadership = leadership
    this.#streams = streams
    this.#close = close
    leadership.onReadied = (count, readiedOf = null) => this.#hint(count, null, readiedOf)
    this.batching = batchingOf(leadership)
  }

  async handOff(batch: HandOffBatch): Promise<HandOffAnswers> {
    return this.#anywhere(
      async ({ engine }) => {
        const answers = await engine.handOff(batch)
        this.#streams.hint(answers.readied, answers.readiedOf)
        return answers
      },
      async (link) => {
        const body = hasLargeCallBack(batch) ? await largeBodyOf(batch) : bodyOf(batch)
        return JSON.parse(await link.ask('handOff', body)) as HandOffAnswers
      },
    )
  }

  /** Only the leader ends leases and back-offs. */
  async sweep(request: SweepRequest): Promise<SweepResult> {
    const { place } = this.#leadership
    if (place?.engine == null) return NOTHING_SWEPT
    const swept = await place.engine.sweep(request)
    this.#streams.hint(swept.woken, swept.readiedOf)
    return swept
  }

  async maintain(request: MaintenanceRequest): Promise<MaintenanceResult> {
    const { place } = this.#leadership
    if (place?.engine == null) return { more: false, readied: 0 }
    const maintained = await place.engine.maintain(request)
    this.#streams.hint(maintained.readied)
    return maintained
  }

  async control(request: ControlRequest): Promise<ControlResult> {
    return this.#anywhere(
      async ({ engine }) => {
        const result = await engine.control(request)
        if (result.kind === 'applied') this.#streams.hint(result.readied, result.readiedOf)
        return result
      },
      (link) => carry(link, 'control', request),
    )
  }

  async releaseInstance(request: ReleaseRequest): Promise<ReleaseResult> {
    return this.#anywhere(
      async ({ engine }) => {
        const result = await engine.releaseInstance(request)
        this.#streams.hint(result.readied)
        return result
      },
      (link) => carry(link, 'releaseInstance', request),
    )
  }

  task(taskId: string): Promise<TaskDetails | null> {
    return this.#carried('task', taskId)
  }

  tasks(query: TaskQuery): Promise<TaskPage> {
    return this.#carried('tasks', query)
  }

  partitions(query: PartitionQuery): Promise<PartitionPage | null> {
    return this.#carried('partitions', query)
  }

  throughput(query: ThroughputQuery): Promise<ThroughputHistory | null> {
    return this.#carried('throughput', query)
  }

  changes(query: ChangeQuery): Promise<ChangePage> {
    return this.#carried('changes', query)
  }

  subscriptions(request: SubscriptionRequest): Promise<SubscriptionResult> {
    return this.#carried('subscriptions', request)
  }

  /** Only the leader delivers. */
  async deliver(request: DeliveryRequest): Promise<DeliveryAnswer | null> {
    const { place } = this.#leadership
    return place?.engine == null ? null : place.engine.deliver(request)
  }

  recordHeartbeats(heartbeats: readonly Heartbeat[]): Promise<void> {
    return this.#carried('recordHeartbeats', heartbeats)
  }

  instance(instanceId: string): Promise<InstanceDetails | null> {
    return this.#carried('instance', instanceId)
  }

  instances(query: InstanceQuery): Promise<InstancePage> {
    return this.#carried('instances', query)
  }

  activeInstances(query: ActiveInstancesQuery): Promise<string[]> {
    return this.#carried('activeInstances', query)
  }

  probe(): Promise<void> {
    return this.#carried('probe', undefined)
  }

  audit(): Promise<string[]> {
    return this.#carried('audit', undefined)
  }

  async close(): Promise<void> {
    await this.#leadership.stop()
    await this.#close()
  }

  onHint(listener: HintListener): void {
    this.#hint = listener
  }

  onLead(listener: () => void): void {
    this.#leadership.onLed = listener
  }

  leads(): boolean {
    return this.#leadership.place?.engine != null
  }

  /** Runs a batch of another node. The answer wakes that node's waiting pulls. */
  async runCarriedBatch(batch: HandOffBatch, from: string): Promise<HandOffAnswers> {
    const answers = await this.#leadership.lead(({ engine }) => engine.handOff(batch))
    this.#streams.hint(answers.readied, answers.readiedOf, from)
    this.#hint(answers.readied, answers.nextDueInMillis, answers.readiedOf ?? null)
    return answers
  }

  async run(verb: Exclude<CarriedVerb, 'handOff'>, argument: unknown): Promise<unknown> {
    const result = await this.#leadership.lead(({ engine }) => call(engine, verb, argument))
    if (verb === 'releaseInstance') {
      const { readied } = result as ReleaseResult
      this.#streams.hint(readied)
      this.#hint(readied)
    }
    if (verb === 'control') {
      const applied = result as ControlResult
      if (applied.kind !== 'applied') return result
      this.#streams.hint(applied.readied, applied.readiedOf)
      this.#hint(applied.readied, null, applied.readiedOf ?? null)
    }
    return result
  }

  #carried<Result>(verb: CarriedVerb, argument: unknown): Promise<Result> {
    return this.#anywhere(
      ({ engine }) => call(engine, verb, argument) as Promise<Result>,
      (link) => carry(link, verb, argument),
    )
  }

  async #anywhere<Result>(
    here: (led: Led) => Promise<Result>,
    there: (link: LeaderLink) => Promise<Result>,
  ): Promise<Result> {
    for (let tries = 1; ; tries += 1) {
      const { engine, link } = this.#leadership.place ?? (await this.#leadership.whenPlaced())
      try {
        return await (engine === null ? there(link) : this.#leadership.lead(here))
      } catch (error) {
        if (!(error instanceof NotTaken)) throw error
        if (tries === MOST_TRIES) throw new StoreUnavailable('store_unavailable', error.message)
      }
    }
  }
}

function call(engine: Store, verb: CarriedVerb, argument: unknown): Promise<unknown> {
  return (engine[verb] as (argument: unknown) => Promise<unknown>).call(engine, argument)
}

async function carry<Result>(link: LeaderLink, verb: CarriedVerb, argument: unknown): Promise<Result> {
  return JSON.parse(await link.ask(verb, bodyOf(argument))) as Result
}

/** Read for each batch, because it depends on which node leads. */
function batchingOf(leadership: Leadership): Batching {
  const present = (): Batching => {
    const { place } = leadership
    return place?.engine == null ? CARRIED : LED
  }
  return {
    get atOnce() {
      return present().atOnce
    },
    get full() {
      return present().full
    },
    get fullAtOnce() {
      return present().fullAtOnce
    },
    get waitShare() {
      return present().waitShare ?? 0
    },
  }
}

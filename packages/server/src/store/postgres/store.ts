import type { WallClock } from '../../handoff/clock.ts'
import { Secrets } from '../../handoff/lease-secrets.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import { type Batching, type Store, StoreUnavailable } from '../../handoff/store.ts'
import { Alone } from './alone/alone.ts'
import { aloneRules } from './alone/alone-rules.ts'
import { Entering } from './alone/entering.ts'
import { Batches } from './batches.ts'
import { CallBacks } from './call-back/call-back.ts'
import { isPlain, PlainHandOffs } from './pull/plain-hand-off.ts'
import { Pull } from './pull/pull.ts'
import { Shrinking } from './queues/shrinking.ts'
import { Roller } from './roll/roller.ts'
import { Names } from './rows/names.ts'
import { Connections } from './session/connections.ts'
import type { Connector } from './session/connector.ts'
import type { DatabaseUrl } from './session/database-url.ts'
import { Hints } from './session/hints.ts'
import { Presence } from './session/presence.ts'
import { statement } from './session/statement.ts'
import { nowStatement, type Transaction } from './session/transaction.ts'
import { Transactions } from './session/transactions.ts'
import { control } from './upkeep/control.ts'
import { Sweep } from './upkeep/sweep.ts'
import { Tidy } from './upkeep/tidy.ts'
import { audit } from './views/audit.ts'
import { changePage } from './views/changes.ts'
import { instancePage, instanceRecord, recordSightings } from './views/instance-rows.ts'
import { partitionPage } from './views/partition-pages.ts'
import { taskPage, taskRecord } from './views/task-rows.ts'
import { Filling } from './windows/filling.ts'

export interface PostgresStoreOptions {
  readonly policy: Policy
  /** For tests that decide what time it is; otherwise the database's clock does. */
  readonly clock?: WallClock
  /** Told of what goes wrong behind a commit, beside a store that is away: nobody waits for it, and it ends nothing. */
  readonly failed?: (error: unknown) => void
  /** The most connections that this node opens for its transactions. */
  readonly connections?: number
}

const CONNECTIONS = 10
/**
 * Small batches cost mostly what each of them costs, so they wait to be larger: 11 % more pulls and settles with 16 clients,
 * 29 % with 48 on two nodes, 2 % less with 64. Large ones use several processors. One request that is not plain has its
 * whole batch take a transaction: beside a producer with arrays of 250 a p99 of 13.3 instead of 8.5 ms for 16 clients.
 */
const BATCHING: Batching = {
  atOnce: 1,
  full: 400,
  fullAtOnce: 3,
  patience: 0.5,
  isApart: (ask) => !isPlain(ask),
}
const CONNECTION_WAIT_MILLIS = 5000

/** Changes nothing, but as a write: a server that has become read-only must be noticed. */
const probe = statement('probe', 'UPDATE baton.level SET virtual = virtual WHERE level = -1')

export class PostgresStore implements Store {
  readonly #connections: Connections
  readonly #transactions: Transactions
  /** For what does not depend on partitions, or is done while this node is alone. */
  readonly #inside: Transactions
  readonly #alone: Alone
  readonly #hints: Hints
  readonly #roller: Roller
  readonly #filling: Filling
  readonly #batches: Batches
  readonly #sweep: Sweep
  readonly #tidy: Tidy
  readonly #underWay = new Set<Promise<unknown>>()
  readonly batching = BATCHING
  /** Until somebody listens, hints are told with the next answer. */
  #unheard = 0
  #hinted: (readied: number) => void = (readied) => {
    this.#unheard += readied
  }
  #closed = false

  constructor(
    { policy, clock, failed = rethrow, connections: most = CONNECTIONS }: PostgresStoreOptions,
    { pooledByTransaction, alone }: DatabaseUrl,
    { connector, noting, listening }: Readonly<Record<'connector' | 'noting' | 'listening', Connector>>,
  ) {
    const presence = new Presence()
    const entering = new Entering(presence, policy, clock)
    const connections = new Connections(connector, most, CONNECTION_WAIT_MILLIS, entering)
    const transactions = new Transactions(connections, clock, true)
    const inside = new Transactions(connections, clock, false)
    const names = new Names(inside)
    connections.onChange(() => names.forget())
    const secrets = new Secrets()
    const readied = (count: number) => this.#tellAll(count)
    this.#connections = connections
    this.#transactions = transactions
    this.#inside = inside
    this.#hints = new Hints(
      listening,
      (count) => this.#hinted(count),
      () => this.#alone.makeRoom(),
    )
    this.#roller = new Roller(inside, (count) => this.#tellRolled(count), failed)
    const filling = new Filling(inside, readied, failed)
    this.#filling = filling
    const shrinking = new Shrinking(inside, failed)
    this.#alone = new Alone({
      ...{ transactions: inside, entering: transactions, policy, names, secrets },
      ...{ filling, shrinking, readied, failed },
      ...{ connector: noting, connections, presence, rules: aloneRules[alone] },
      counted: () => this.#roller.kick(),
      listener: () => (alone === 'never' || pooledByTransaction ? undefined : this.#hints.processId),
    })
    this.#batches = new Batches({
      ...{ transactions, names, policy, filling, shrinking },
      alone: this.#alone,
      roller: this.#roller,
      wake: (pulls) => this.#hinted(pulls),
      callBacks: new CallBacks(policy, names),
      pull: new Pull(policy, names, secrets),
      plain: new PlainHandOffs(transactions, policy, names, secrets),
    })
    this.#sweep = new Sweep({ transactions, policy, clock, roller: this.#roller, alone: this.#alone })
    this.#tidy = new Tidy(transactions, this.#roller, names)
  }

  /** Whatever an earlier node left behind is written up first. */
  async start(): Promise<void> {
    await this.#transactions.runOne(nowStatement)
    await this.#hints.start()
    await this.#filling.fillAbandoned()
  }

  onHint(listener: (readied: number) => void): void {
    this.#hinted = listener
  }

  handOff: Store['handOff'] = (batch) =>
    this.#track(async () => {
      const answers = await this.#batches.run(batch)
      this.#hints.tell(answers.readied)
      const unheard = this.#unheard
      this.#unheard = 0
      return unheard === 0 ? answers : { ...answers, readied: answers.readied + unheard }
    })

  sweep: Store['sweep'] = (order) =>
    this.#track(async () => {
      await this.#batches.idle()
      const swept = await this.#sweep.run(order)
      this.#hints.tell(swept.woken)
      return swept
    })

  tidy: Store['tidy'] = (order) =>
    this.#track(async () => {
      const tidied = await this.#alone.transact(() => this.#tidy.run(order))
      this.#hints.tell(tidied.readied)
      return tidied
    })

  control: Store['control'] = (order) =>
    this.#track(async () => {
      const result = await this.#alone.transact(() => control(this.#transactions, order))
      if (result.kind === 'applied') this.#hints.tell(result.readied)
      return result
    })

  task: Store['task'] = (taskId) => this.#view((tx) => taskRecord(tx, taskId))
  tasks: Store['tasks'] = (query) => this.#view((tx) => taskPage(tx, query))
  partitions: Store['partitions'] = (query) => this.#view((tx) => partitionPage(tx, query))
  changes: Store['changes'] = (query) => this.#view((tx) => changePage(tx, query))
  instance: Store['instance'] = (instanceId) => this.#view((tx) => instanceRecord(tx, instanceId))
  instances: Store['instances'] = (query) => this.#view((tx) => instancePage(tx, query))
  audit: Store['audit'] = () => this.#view(audit)

  recordSightings: Store['recordSightings'] = (sightings) =>
    this.#track(() => this.#inside.run((tx) => recordSightings(tx, sightings)))

  probe: Store['probe'] = () =>
    this.#track(() =>
      this.#inside.run(async (tx) => {
        await tx.write(probe)
      }),
    )

  /** Waits for what was asked before. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.allSettled(this.#underWay)
    await this.#alone.close()
    await this.#batches.stop()
    await this.#roller.stop()
    await this.#hints.close()
    await this.#connections.close()
  }

  /** Counters are folded in first, so what is shown holds everything that was answered before. */
  #view<Result>(look: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#track(() =>
      this.#alone.show(async (transactions) => {
        await this.#batches.idle()
        this.#tellRolled(await this.#roller.settleUp())
        return transactions.run(look, { kind: 'reading' })
      }),
    )
  }

  /** What the roller made ready may belong before what a stint has read ahead. */
  #tellRolled(readied: number): void {
    this.#tellAll(readied)
    if (readied > 0) void this.#alone.end()
  }

  /** What became ready without a request whose answer could say so. */
  #tellAll(readied: number): void {
    if (readied <= 0) return
    this.#hints.tell(readied)
    this.#hinted(readied)
  }

  #track<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closed) return Promise.reject(new StoreUnavailable('store_unavailable', 'the store is closed'))
    const running = work()
    this.#underWay.add(running)
    const done = () => this.#underWay.delete(running)
    running.then(done, done)
    return running
  }
}

function rethrow(error: unknown): never {
  throw error
}

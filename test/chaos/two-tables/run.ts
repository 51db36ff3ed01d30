import { setTimeout as sleep } from 'node:timers/promises'
import { Chance } from '../support/chance.ts'
import { CheckedClient } from '../support/checked-client.ts'
import type { Disturbance, Fleet } from '../support/fleet.ts'
import { checkLogs, type Happened } from '../support/log-checks.ts'
import { requestKinds } from '../support/request-kinds.ts'
import { Findings } from '../support/scene.ts'
import { Plan, type Table } from './plan.ts'
import { type WorkerFleet, workOn } from './table-worker.ts'

export interface TwoTablesOptions {
  readonly seed: number
  readonly leaseMillis: number
  readonly partitions: number
  /** Workers of each table. */
  readonly workers: number
  /** The most that a worker pulls at a time. */
  readonly batch: number
  /** The number of disturbances in the run. */
  readonly disturbances: number
  readonly startFleet: (leaseMillis: number) => Promise<Fleet>
  /** Selects from the disturbances of the fleet. */
  readonly choose: (disturbances: readonly Disturbance[]) => readonly Disturbance[]
  readonly tell: (line: string) => void
}

export interface TwoTablesOutcome {
  readonly findings: readonly string[]
  readonly partitions: number
  readonly handedOut: number
  readonly wrong: number
  /** How often each disturbance happened. */
  readonly happened: Readonly<Record<string, number>>
  /** Partitions of `results.orders` done per second, with the other fleet at work and without it. */
  readonly rate: { readonly together: number; readonly alone: number }
  /** Partitions of `results.sales` that were done while its fleet was away, until all others were done. */
  readonly doneWhileAway: number
}

const ORDERS: Table = 'results.orders'
const SALES: Table = 'results.sales'
/** The share of its partitions that the first fleet has done when the second one leaves. */
const LEAVES_AT = 0.25
const STANDSTILL_MILLIS = 120_000

/**
 * Two fleets of workers on one service, each for its own table. One fleet stops while it holds leases, and
 * its unfinished partitions are earlier in the order than those of the other. The other fleet has to finish
 * its table meanwhile. Then the first one returns.
 */
export async function twoTables(options: TwoTablesOptions): Promise<TwoTablesOutcome> {
  const { seed, leaseMillis, partitions, workers, batch, tell } = options
  const nodes = await options.startFleet(leaseMillis)
  const findings = new Findings((finding) => tell(`FOUND ${finding}`))
  const client = new CheckedClient(nodes.nodes, findings)
  const chance = new Chance(seed)
  const plan = new Plan(partitions)
  const happened: Happened[] = []
  const fleetOf = (table: Table): WorkerFleet => ({
    ...{ table, client, plan, findings, isAway: false, isOver: false, atWork: 0 },
    ...{ handedOut: 0, wrong: 0 },
  })
  const [orders, sales] = [fleetOf(ORDERS), fleetOf(SALES)]
  const rate = { together: 0, alone: 0 }
  let doneWhileAway = 0
  const working = [orders, sales].flatMap((fleet) =>
    Array.from({ length: workers }, (_, number) => {
      const name = `${fleet.table}-${number}`
      return workOn(fleet, name, chance.for(name), batch)
    }),
  )
  const producing = callBack(client, plan, chance.for('producer'))
  // A client that throws ends the run.
  const failed = Promise.all([...working, producing]).then(() => new Promise<never>(() => {}))
  failed.catch(() => {})
  const storm = new Storm(options, nodes.disturbances, plan, happened)
  const orFailed = (part: Promise<unknown>) => Promise.race([failed, storm.failed, part])
  try {
    storm.begin(chance.for('storm'))
    const together = stopwatch(plan)
    await orFailed(reached(plan, () => plan.done[ORDERS] >= LEAVES_AT * plan.total[ORDERS]))
    rate.together = together()
    sales.isAway = true
    tell(`${SALES} goes away with ${plan.done[SALES]} of ${plan.total[SALES]} done`)
    // Requests that its workers have already sent are still answered.
    await orFailed(reached(plan, () => sales.atWork === 0))
    const before = plan.done[SALES]
    const alone = stopwatch(plan)
    await orFailed(producing)
    await orFailed(finish(client, plan, ORDERS, chance.for('operator')))
    rate.alone = alone()
    doneWhileAway = plan.done[SALES] - before
    tell(`all ${plan.total[ORDERS]} of ${ORDERS} are done; ${SALES} has ${plan.done[SALES]} and returns`)
    sales.isAway = false
    await orFailed(finish(client, plan, SALES, chance.for('operator')))
    await storm.end()
    await orFailed(checkViews(client, plan, findings, chance.for('views')))
    for (const fleet of [orders, sales]) fleet.isOver = true
    await Promise.all(working)
    for (const finding of await nodes.audit()) findings.add(`audit: ${finding}`)
  } catch (error) {
    findings.add(`the run could not continue: ${error instanceof Error ? error.stack : error}`)
    for (const { name, log } of nodes.nodes) tell(`the log of ${name} ends: ${log.slice(-2000)}`)
  } finally {
    for (const fleet of [orders, sales]) fleet.isOver = true
    client.isClosed = true
    await storm.end()
    await nodes.dispose()
  }
  checkLogs(nodes.nodes, happened, findings)
  const counts: Record<string, number> = {}
  for (const { disturbance } of happened) counts[disturbance.name] = (counts[disturbance.name] ?? 0) + 1
  return {
    findings: findings.all,
    partitions: plan.done[ORDERS] + plan.done[SALES],
    handedOut: orders.handedOut + sales.handedOut,
    wrong: orders.wrong + sales.wrong,
    happened: counts,
    ...{ rate, doneWhileAway },
  }
}

/** One disturbance after the other, distributed evenly over the work. */
class Storm {
  readonly #options: TwoTablesOptions
  readonly #disturbances: readonly Disturbance[]
  readonly #plan: Plan
  readonly #happened: Happened[]
  #isOver = false
  #running: Promise<void> = Promise.resolve()
  failed: Promise<never> = new Promise(() => {})

  constructor(
    options: TwoTablesOptions,
    disturbances: readonly Disturbance[],
    plan: Plan,
    happened: Happened[],
  ) {
    this.#options = options
    this.#disturbances = options.choose(disturbances)
    this.#plan = plan
    this.#happened = happened
  }

  begin(chance: Chance): void {
    this.#running = this.#run(chance)
    this.failed = this.#running.then(() => new Promise<never>(() => {}))
    this.failed.catch(() => {})
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running.catch(() => {})
  }

  async #run(chance: Chance): Promise<void> {
    const { disturbances: times, partitions, tell } = this.#options
    for (let time = 1; time <= times; time += 1) {
      const from = (partitions * time) / (times + 1)
      while (!this.#isOver && doneOf(this.#plan) < from) await sleep(10)
      if (this.#isOver) return
      // One kind after the other, so that each happens even in a short run.
      const disturbance = this.#disturbances[time % this.#disturbances.length] as Disturbance
      this.#happened.push({ disturbance, at: Date.now() })
      tell(`${disturbance.name.padEnd(9)} ${doneOf(this.#plan)} done`)
      await disturbance.happen(chance)
    }
  }
}

const doneOf = ({ done }: Plan): number => done[ORDERS] + done[SALES]

async function callBack(client: CheckedClient, plan: Plan, chance: Chance): Promise<void> {
  for (const taskId of plan.tasks) {
    const body = plan.descriptors(taskId)
    const headers = { 'x-instance-id': 'producer' }
    await client.sendUntilAccepted(requestKinds.callBack, { path: '/call-back', headers, body }, chance)
  }
}

/** Waits until all partitions of a table are done. Partitions that were parked meanwhile are retried. */
async function finish(client: CheckedClient, plan: Plan, table: Table, chance: Chance): Promise<void> {
  while (!plan.isDone(table)) {
    const before = plan.done[table]
    await sleep(500)
    // Only when it slows down: then the rest is parked, or leased to a worker that forgot it.
    if (plan.done[table] - before > 100) continue
    for (const taskId of plan.unfinished(table))
      await client.sendUntilAnswered(
        requestKinds.control,
        { path: `/tasks/${taskId}/retry`, body: {} },
        chance,
      )
    await reached(plan, () => plan.done[table] > before || plan.isDone(table))
  }
}

async function reached(plan: Plan, isSo: () => boolean): Promise<void> {
  let [last, lastAt] = [doneOf(plan), Date.now()]
  while (!isSo()) {
    if (doneOf(plan) > last) [last, lastAt] = [doneOf(plan), Date.now()]
    if (Date.now() - lastAt > STANDSTILL_MILLIS) throw new Error('nothing is settled any more')
    await sleep(10)
  }
}

/** Measures the partitions of the first table done per second, from now on. */
function stopwatch({ done }: Plan): () => number {
  const [from, startedAt] = [done[ORDERS], Date.now()]
  return () => Math.round((done[ORDERS] - from) / ((Date.now() - startedAt) / 1000))
}

async function checkViews(
  client: CheckedClient,
  plan: Plan,
  findings: Findings,
  chance: Chance,
): Promise<void> {
  for (const taskId of plan.tasks) {
    const { body } = await client.sendUntilAccepted(requestKinds.task, { path: `/tasks/${taskId}` }, chance)
    const { total, done } = body.partitions
    if (total !== plan.descriptors(taskId).length || done !== total)
      findings.add(`${taskId} ends as ${body.state} with ${JSON.stringify(body.partitions)}`)
  }
}

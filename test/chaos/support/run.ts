import { Chance } from './chance.ts'
import { CheckedClient } from './checked-client.ts'
import { checkEndState, doneTimesOf, type Rows, readEndState } from './end-state.ts'
import type { Disturbance, Fleet } from './fleet.ts'
import { History } from './history.ts'
import { checkLeases } from './lease-checks.ts'
import { checkLimit, setLimit } from './limit-checks.ts'
import { checkLogs, type Happened } from './log-checks.ts'
import { withoutLostTails } from './lost-tails.ts'
import { operate } from './operators.ts'
import { checkOrder } from './order-checks.ts'
import { callBackAgain, produce } from './producers.ts'
import { checkKeys, checkPulls } from './pull-checks.ts'
import { Findings, type Scene, type Size } from './scene.ts'
import { drain } from './storm.ts'
import { checkTasks } from './task-checks.ts'
import { work } from './workers.ts'

export interface RunOptions {
  readonly seed: number
  readonly leaseMillis: number
  readonly size: Size
  readonly startFleet: (leaseMillis: number) => Promise<Fleet>
  /** The disturbances during the run. Afterwards the remaining work is finished without any. */
  readonly storm: (scene: Scene, disturbances: readonly Disturbance[]) => Promise<void>
  readonly tell: (line: string) => void
}

export interface Outcome {
  readonly findings: readonly string[]
  readonly leases: number
  readonly done: number
  readonly unanswered: number
}

/** One run: a fleet, its clients, the disturbances, and the findings. */
export async function run(options: RunOptions): Promise<Outcome> {
  const { seed, leaseMillis, size, tell } = options
  const fleet = await options.startFleet(leaseMillis)
  const findings = new Findings((finding) => tell(`FOUND ${finding}`))
  const client = new CheckedClient(fleet.nodes, findings)
  const history = new History(leaseMillis)
  const chance = new Chance(seed)
  const scene: Scene = { client, history, findings, chance, size, isStormy: true, isOver: false }
  const happened: Happened[] = []
  const disturbances = fleet.disturbances.map((disturbance) => noted(disturbance, happened))
  let rows: Rows = new Map()
  try {
    await perform(scene, fleet, () => options.storm(scene, disturbances))
    rows = await readEndState(scene, fleet.nodes)
    for (const finding of await fleet.audit()) findings.add(`audit: ${finding}`)
  } catch (error) {
    findings.add(`the run could not continue: ${error instanceof Error ? error.stack : error}`)
    for (const { name, log } of fleet.nodes) tell(`the log of ${name} ends: ${log.slice(-2000)}`)
  } finally {
    client.isClosed = true
    await fleet.dispose()
  }
  judge(history, fleet, rows, size.maxLeases, findings)
  checkLogs(fleet.nodes, happened, findings)
  for (const { name, ends, log } of fleet.nodes)
    if (ends > 0) findings.add(`${name} ended by itself ${ends} times: ${log}`)
  const { unanswered } = client
  return { findings: findings.all, leases: history.leases.size, done: history.done, unanswered }
}

/** Checks the answers against the guarantees. */
function judge(
  history: History,
  { lostTails = [] }: Fleet,
  rows: Rows,
  maxLeases: number | null,
  findings: Findings,
): void {
  checkPulls(history, findings)
  const certain = withoutLostTails(history, lostTails)
  checkLeases(certain, findings)
  checkKeys(certain, findings)
  checkOrder(certain, findings, lostTails)
  checkTasks(certain, doneTimesOf(rows), findings)
  checkLimit(certain, maxLeases, findings)
  checkEndState(rows, history, certain, findings)
}

function noted(disturbance: Disturbance, happened: Happened[]): Disturbance {
  return {
    ...disturbance,
    happen: (chance) => {
      happened.push({ disturbance, at: Date.now() })
      return disturbance.happen(chance)
    },
  }
}

async function perform(scene: Scene, { lostTails = [] }: Fleet, storm: () => Promise<void>): Promise<void> {
  const { producers, workers, operators } = scene.size
  await setLimit(scene)
  const everyone = (count: number, name: string, play: (scene: Scene, name: string) => Promise<void>) =>
    Promise.all(Array.from({ length: count }, (_, number) => play(scene, `${name}-${number}`)))
  const working = everyone(workers, 'worker', work)
  const producing = everyone(producers, 'producer', produce)
  const operating = everyone(operators, 'operator', operate)
  // A client that throws ends the run, whatever the others are doing.
  const failed = Promise.all([working, producing, operating]).then(() => new Promise<never>(() => {}))
  failed.catch(() => {
    scene.isStormy = false
    scene.isOver = true
  })
  await Promise.race([failed, storm()])
  scene.isStormy = false
  await Promise.race([failed, Promise.all([producing, operating])])
  if (lostTails.length > 0) await Promise.race([failed, callBackAgain(scene)])
  await Promise.race([failed, drain(scene)])
  scene.isOver = true
  await working
}

import { Asking } from './asking.ts'
import { Chance } from './chance.ts'
import type { Disturbance } from './disturbances.ts'
import { drain } from './drain.ts'
import { checkEndState } from './end-state.ts'
import { Findings } from './findings.ts'
import type { Fleet } from './fleet.ts'
import { History } from './history.ts'
import { checkLeases } from './lease-invariants.ts'
import { operate } from './operators.ts'
import { produce } from './producers.ts'
import { checkPulls } from './pull-invariants.ts'
import type { Scene, Size } from './scene.ts'
import { checkTasks } from './task-invariants.ts'
import { work } from './workers.ts'

export interface RunOptions {
  readonly seed: number
  readonly leaseMillis: number
  readonly size: Size
  readonly startFleet: (leaseMillis: number) => Promise<Fleet>
  /** What happens meanwhile; when it is over, the rest is worked off in peace. */
  readonly storm: (scene: Scene, disturbances: readonly Disturbance[]) => Promise<void>
  readonly tell: (line: string) => void
}

export interface Outcome {
  readonly findings: readonly string[]
  readonly leases: number
  readonly done: number
  readonly unanswered: number
}

/** One run: a fleet, those who use it, what happens to it, and a verdict. */
export async function run(options: RunOptions): Promise<Outcome> {
  const { seed, leaseMillis, size, tell } = options
  const fleet = await options.startFleet(leaseMillis)
  const findings = new Findings((finding) => tell(`FOUND ${finding}`))
  const asking = new Asking(fleet.nodes, findings)
  const history = new History(leaseMillis)
  const chance = new Chance(seed)
  const scene: Scene = { asking, history, findings, chance, size, isStormy: true, isOver: false }
  try {
    await perform(scene, () => options.storm(scene, fleet.disturbances))
    checkTasks(history, await checkEndState(scene, fleet.nodes), findings)
    for (const finding of await fleet.audit()) findings.add(`audit: ${finding}`)
  } catch (error) {
    findings.add(`the run could not go on: ${error instanceof Error ? error.stack : error}`)
  } finally {
    asking.isClosed = true
    await fleet.dispose()
  }
  checkLeases(history, findings)
  checkPulls(history, findings)
  for (const { name, ends, log } of fleet.nodes)
    if (ends > 0) findings.add(`${name} ended by itself ${ends} times: ${log}`)
  if (findings.all.length > 0) for (const line of errorsLogged(fleet)) tell(line)
  const { unanswered } = asking
  return { findings: findings.all, leases: history.leases.size, done: history.done, unanswered }
}

async function perform(scene: Scene, storm: () => Promise<void>): Promise<void> {
  const { producers, workers, operators } = scene.size
  const everyone = (count: number, name: string, play: (scene: Scene, name: string) => Promise<void>) =>
    Promise.all(Array.from({ length: count }, (_, number) => play(scene, `${name}-${number}`)))
  const working = everyone(workers, 'worker', work)
  const producing = everyone(producers, 'producer', produce)
  const operating = everyone(operators, 'operator', operate)
  // Whoever cannot go on ends the run, whatever the others still do.
  const failed = Promise.all([working, producing, operating]).then(() => new Promise<never>(() => {}))
  failed.catch(() => {
    scene.isStormy = false
    scene.isOver = true
  })
  await Promise.race([failed, storm()])
  scene.isStormy = false
  await Promise.race([failed, Promise.all([producing, operating])])
  await Promise.race([failed, drain(scene)])
  scene.isOver = true
  await working
}

/** What nodes say about errors that nobody expects. */
function errorsLogged({ nodes }: Fleet): string[] {
  return nodes.flatMap(({ name, log }) =>
    log
      .split('\n')
      .filter((line) => line.includes('"level":50'))
      .slice(-5)
      .map((line) => `${name} logged ${line}`),
  )
}

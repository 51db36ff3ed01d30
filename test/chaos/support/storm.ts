import { setTimeout as sleep } from 'node:timers/promises'
import type { Disturbance } from './fleet.ts'
import { requestKinds } from './request-kinds.ts'
import type { Scene } from './scene.ts'

/**
 * Partitions to settle before each disturbance of a storm that has each one once, so that the fleet is under
 * load.
 */
const WORK = 700
/** The most partitions to settle between two disturbances of a long storm. */
const PEACE = 2000
/** The longest time without a partition settled or finished, on the slowest machine. */
const STANDSTILL_MILLIS = 120_000

/** Each disturbance once, one after the other. */
export async function everyDisturbance(
  scene: Scene,
  disturbances: readonly Disturbance[],
  tell: (name: string) => void,
): Promise<void> {
  const chance = scene.chance.for('storm')
  const inBetween = WORK / (disturbances.length + 1)
  for (const disturbance of chance.shuffled(disturbances)) {
    await settled(scene, inBetween)
    tell(disturbance.name)
    await disturbance.happen(chance)
  }
  await settled(scene, inBetween)
}

/** One disturbance after the other until the time is over, and two at a time if there are enough of them. */
export async function longStorm(
  scene: Scene,
  disturbances: readonly Disturbance[],
  seconds: number,
  tell: (name: string) => void,
): Promise<void> {
  const until = Date.now() + seconds * 1000
  const underWay = new Set<Disturbance>()
  const front = async (name: string) => {
    const chance = scene.chance.for(name)
    while (Date.now() < until) {
      await settled(scene, chance.between(1, PEACE))
      // The same disturbance twice at a time would conflict: a database that is down cannot be stopped.
      const disturbance = chance.pick(disturbances.filter((one) => !underWay.has(one)))
      underWay.add(disturbance)
      tell(disturbance.name)
      await disturbance.happen(chance)
      underWay.delete(disturbance)
    }
  }
  const fronts = disturbances.length > 2 ? ['first front', 'second front'] : ['only front']
  await Promise.all(fronts.map(front))
}

/** Waits until this many more leases have been settled as done. */
export async function settled({ history }: Scene, count: number): Promise<void> {
  const enough = history.done + count
  let [last, lastAt] = [history.done, Date.now()]
  while (history.done < enough) {
    if (history.done > last) [last, lastAt] = [history.done, Date.now()]
    if (Date.now() - lastAt > STANDSTILL_MILLIS) throw new Error('nothing is settled any more')
    await sleep(10)
  }
}

/** Waits until everything is done or cancelled. Partitions that were parked in the storm are retried. */
export async function drain(scene: Scene): Promise<void> {
  const { client, history, findings } = scene
  const chance = scene.chance.for('drain')
  let open = [...history.tasks.values()].filter(({ accepted }) => accepted.size > 0)
  let [fewest, fewestAt] = [Number.POSITIVE_INFINITY, Date.now()]
  while (open.length > 0) {
    const unfinished: { readonly taskId: string; readonly count: number; readonly stand: string }[] = []
    for (const { taskId } of open) {
      const { body } = await client.sendUntilAccepted(requestKinds.task, { path: `/tasks/${taskId}` }, chance)
      const { total, done, cancelled, parked } = body.partitions
      const stand = `${taskId} is ${body.state}: ${JSON.stringify(body.partitions)}`
      if (done + cancelled < total) unfinished.push({ taskId, count: total - done - cancelled, stand })
      if (parked > 0 && body.state !== 'cancelled')
        await client.sendUntilAccepted(
          requestKinds.control,
          { path: `/tasks/${taskId}/retry`, body: {} },
          chance,
        )
    }
    open = open.filter((task) => unfinished.some(({ taskId }) => taskId === task.taskId))
    const count = unfinished.reduce((sum, one) => sum + one.count, 0)
    if (count < fewest) [fewest, fewestAt] = [count, Date.now()]
    if (Date.now() - fewestAt > STANDSTILL_MILLIS) {
      for (const { stand } of unfinished) findings.add(`not finished and nothing moves: ${stand}`)
      return
    }
    await sleep(50)
  }
}

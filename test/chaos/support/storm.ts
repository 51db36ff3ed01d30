import { setTimeout as sleep } from 'node:timers/promises'
import type { Disturbance } from './disturbances.ts'
import type { Scene } from './scene.ts'

/** What is done in a storm that has each disturbance once: what is disturbed must be at work. */
const WORK = 2400
/** The most that is done between two disturbances of a long one. */
const PEACE = 600
/** How long nothing may be settled as done, on the slowest machine. */
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

/** One after the other until the time is over, and two at a time where there are enough of them. */
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
      // The same one twice at a time would undo itself: a database that is down cannot be ended.
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

/** Waits until so many more leases have been settled as done. */
async function settled({ history }: Scene, count: number): Promise<void> {
  const enough = history.done + count
  let [last, lastAt] = [history.done, Date.now()]
  while (history.done < enough) {
    if (history.done > last) [last, lastAt] = [history.done, Date.now()]
    if (Date.now() - lastAt > STANDSTILL_MILLIS) throw new Error('nothing is settled any more')
    await sleep(10)
  }
}

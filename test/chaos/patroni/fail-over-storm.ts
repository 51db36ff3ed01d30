import { setTimeout as sleep } from 'node:timers/promises'
import type { Disturbance } from '../support/fleet.ts'
import type { Scene } from '../support/scene.ts'
import { settled } from '../support/storm.ts'

/**
 * The most partitions that are done between two kills: the next kill may come before the cluster has
 * recovered.
 */
const PEACE = 600

/**
 * Kills this many times, one after the other, each kind about equally often. Reports how long each kill
 * blocked settles.
 */
export async function failOverStorm(
  scene: Scene,
  kinds: readonly Disturbance[],
  kills: number,
  tell: (line: string) => void,
): Promise<void> {
  const chance = scene.chance.for('storm')
  const pauses: number[] = []
  let left: Disturbance[] = []
  for (let number = 1; number <= kills; number += 1) {
    await settled(scene, chance.between(1, PEACE))
    if (left.length === 0) left = chance.shuffled(kinds)
    const kind = left.pop()
    if (kind === undefined) throw new Error('there is nothing that could be killed')
    tell(
      `kill ${number} of ${kills}: ${kind.name}; ${scene.history.leases.size} leases, ${scene.history.done} done`,
    )
    const pause = await longestPause(scene, kind.happen(chance))
    tell(`nothing was settled for ${seconds(pause)}`)
    pauses.push(pause)
  }
  await settled(scene, PEACE)
  const ordered = pauses.toSorted((a, b) => a - b)
  const [least = 0, middle = 0, most = 0] = [0, ordered.length >> 1, -1].map((at) => ordered.at(at))
  tell(
    `${kills} kills; nothing was settled for ${seconds(least)} to ${seconds(most)}, in the middle ${seconds(middle)}`,
  )
}

/** The longest time without a partition settled as done, up to the first settle after the outage. */
async function longestPause(scene: Scene, happening: Promise<void>): Promise<number> {
  const { history } = scene
  let [longest, done, lastAt] = [0, history.done, Date.now()]
  const look = () => {
    longest = Math.max(longest, Date.now() - lastAt)
    if (history.done > done) [done, lastAt] = [history.done, Date.now()]
  }
  let isOver = false
  const over = happening.finally(() => {
    isOver = true
  })
  over.catch(() => {})
  while (!isOver) {
    look()
    await sleep(10)
  }
  await over
  await settled(scene, 1)
  look()
  return longest
}

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

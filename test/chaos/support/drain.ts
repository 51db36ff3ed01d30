import { setTimeout as sleep } from 'node:timers/promises'
import { questions } from './questions.ts'
import type { Scene } from './scene.ts'

/** How long nothing may be finished, on the slowest machine. */
const STANDSTILL_MILLIS = 120_000

/** Until everything is done or cancelled. What was parked in the storm gets fresh attempts. */
export async function drain(scene: Scene): Promise<void> {
  const { asking, history, findings } = scene
  const chance = scene.chance.for('drain')
  let open = [...history.tasks.values()].filter(({ accepted }) => accepted.size > 0)
  let [fewest, fewestAt] = [Number.POSITIVE_INFINITY, Date.now()]
  while (open.length > 0) {
    const unfinished: { readonly taskId: string; readonly count: number; readonly stand: string }[] = []
    for (const { taskId } of open) {
      const { body } = await asking.demand(questions.task, { path: `/tasks/${taskId}` }, chance)
      const { total, done, cancelled, parked } = body.partitions
      const stand = `${taskId} is ${body.state}: ${JSON.stringify(body.partitions)}`
      if (done + cancelled < total) unfinished.push({ taskId, count: total - done - cancelled, stand })
      if (parked > 0 && body.state !== 'cancelled')
        await asking.demand(questions.control, { path: `/tasks/${taskId}/retry`, body: {} }, chance)
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
